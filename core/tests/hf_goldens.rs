//! Every field of `tokenizers` for made-up files, as `goldens/record.py` recorded it.

use bpe_core::hf::{Encoding, Input, Sequence, Tokenizer};
use serde_json::{Value, json};

/// Reads a recorded file, whose vocabulary is a list.
fn tokenizer(mut file: Value) -> Tokenizer {
    let tokens = file["model"]["vocab"].as_array().unwrap().clone();
    let vocab = tokens.iter().enumerate().map(|(id, token)| (token.as_str().unwrap().into(), id));
    file["model"]["vocab"] = Value::Object(vocab.map(|(token, id)| (token, id.into())).collect());
    Tokenizer::from_json(&file.to_string()).unwrap()
}

/// All fields, in the order in which they were recorded.
fn fields(encoding: &Encoding) -> Value {
    let details = encoding.details.as_ref().unwrap();
    let overflowing: Vec<Value> = encoding.overflowing.iter().map(fields).collect();
    json!([
        encoding.ids,
        details.tokens,
        details.offsets,
        details.words,
        encoding.type_ids.iter().collect::<Vec<_>>(),
        encoding.sequence_ids().unwrap(),
        encoding.special_tokens_mask.iter().collect::<Vec<_>>(),
        encoding.attention_mask.iter().collect::<Vec<_>>(),
        overflowing
    ])
}

/// The FNV-1a hash of the fields as JSON.
fn digest(fields: &Value) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", fields.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn words(input: &Value) -> Option<Vec<String>> {
    let words = input.as_array()?.iter();
    Some(words.map(|word| word.as_str().unwrap().to_owned()).collect())
}

#[test]
fn every_field_equals_that_of_tokenizers() {
    let goldens: Vec<Value> = serde_json::from_str(include_str!("goldens/goldens.json")).unwrap();
    assert_eq!(goldens.len(), 100);
    for golden in goldens {
        let tokenizer = tokenizer(golden["file"].clone());
        for case in golden["cases"].as_array().unwrap() {
            let words = words(&case["first"]);
            let first = match &words {
                Some(words) => Sequence::Words(words),
                None => Sequence::Text(case["first"].as_str().unwrap()),
            };
            let input = Input { first, second: case["second"].as_str().map(Sequence::Text) };
            let add_special_tokens = case["special"].as_bool().unwrap();
            let mut encoding =
                tokenizer.encode_fully(input, add_special_tokens, true, true).unwrap();
            tokenizer.pad([&mut encoding].into_iter()).unwrap();
            let note = format!("{case} in {}", golden["file"]);
            assert_eq!(json!(encoding.ids), case["ids"], "{note}");
            let found = fields(&encoding);
            assert_eq!(json!(digest(&found)), case["fields"], "{found} for {note}");
            for skip in [false, true] {
                let decoded = tokenizer.decode(&encoding.ids, skip).unwrap();
                assert_eq!(json!(decoded), case["decoded"][usize::from(skip)], "{note}");
            }
            // The walk for ids alone.
            let mut encoded = tokenizer.encode(input, add_special_tokens, Vec::new()).unwrap();
            let ids = match &mut encoded {
                bpe_core::hf::Encoded::Ids { ids, .. } => ids.clone(),
                encoded => {
                    let encoding = encoded.encoding_mut().unwrap();
                    tokenizer.pad([&mut *encoding].into_iter()).unwrap();
                    encoding.ids.clone()
                }
            };
            assert_eq!(json!(ids), case["ids"], "{note}");
        }
    }
}
