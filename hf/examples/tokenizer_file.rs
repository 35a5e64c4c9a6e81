//! Implements a server's trait on `Tokenizer`, and encodes a prompt.
//!
//! ```text
//! cargo run -p bpe-hf --example tokenizer_file [tokenizer.json] [TEXT]
//! ```

use std::error::Error;

use bpe_hf::{Segment, Tokenizer};

/// The calls that a server of ours needs of any tokenizer.
trait ServerTokenizer: Send + Sync {
    fn encode(&self, prompt: &str) -> bpe_hf::Result<Vec<u32>>;
    fn encode_message(&self, role: &str, untrusted: &str) -> bpe_hf::Result<Vec<u32>>;
    fn decode_each(&self, ids: &[u32]) -> bpe_hf::Result<Vec<String>>;
}

impl ServerTokenizer for Tokenizer {
    fn encode(&self, prompt: &str) -> bpe_hf::Result<Vec<u32>> {
        self.encode_text(prompt, true)
    }

    fn encode_message(&self, role: &str, untrusted: &str) -> bpe_hf::Result<Vec<u32>> {
        self.encode_segments(&[Segment::Trusted(role), Segment::Untrusted(untrusted)])
    }

    fn decode_each(&self, ids: &[u32]) -> bpe_hf::Result<Vec<String>> {
        let mut stream = self.decode_stream(&[], false)?;
        let steps = ids.iter().map(|&id| Ok(stream.step(id)?.unwrap_or_default()));
        steps.collect()
    }
}

/// A file with a token for each byte of ASCII, and one special token.
fn small_file() -> String {
    let printable = ('!'..='~').filter(|letter| !"\"\\".contains(*letter));
    let vocab: Vec<String> = printable
        .chain(['\u{120}', '\u{e9}'])
        .enumerate()
        .map(|(id, letter)| format!("\"{letter}\": {id}"))
        .collect();
    let id = vocab.len();
    format!(
        r#"{{
  "added_tokens": [{{"id": {id}, "content": "<end>", "single_word": false, "lstrip": false,
    "rstrip": false, "normalized": false, "special": true}}],
  "normalizer": null,
  "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
  "post_processor": null,
  "decoder": {{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}},
  "model": {{"type": "BPE", "vocab": {{{}}}, "merges": []}}
}}"#,
        vocab.join(", ")
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let tokenizer = match arguments.next() {
        Some(path) => Tokenizer::from_file(path)?,
        None => Tokenizer::from_json(&small_file())?,
    };
    let text = arguments.next().unwrap_or_else(|| "Hello <end>".to_owned());

    let server: &dyn ServerTokenizer = &tokenizer;
    println!("trusted:   {:?}", server.encode(&text)?);
    let ids = server.encode_message("", &text)?;
    println!("untrusted: {ids:?}");
    println!("streamed:  {:?}", server.decode_each(&ids)?);
    assert!(ids.iter().all(|&id| !tokenizer.is_special(id)));
    assert_eq!(server.decode_each(&ids)?.concat(), text);
    Ok(())
}
