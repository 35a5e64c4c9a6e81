//! Tests lines of rank files: read as tiktoken reads them, or refused with their number.

use bpe_core::vocabulary::{MAX_ID, MAX_TOKENS, RankList};
use bpe_core::{Error, rank_file};

fn read(contents: &str) -> Vec<(Vec<u8>, u32)> {
    let list = rank_file::parse(contents.as_bytes()).unwrap();
    list.iter().map(|(token, id)| (token.to_vec(), id)).collect()
}

fn refused(contents: &str) -> (usize, String) {
    match rank_file::parse(contents.as_bytes()) {
        Err(Error::RankFile { line, reason }) => (line, reason),
        other => panic!("{contents:?}: {other:?}"),
    }
}

#[test]
fn fields_stand_apart_by_any_white_space() {
    let spaces = ["YQ== 7", " YQ==  7 ", "YQ==\t7", "YQ==\x0b7", "YQ==\x0c7", "\t YQ== \t7\x0c"];
    for line in spaces {
        assert_eq!(read(line), [(b"a".to_vec(), 7)], "{line:?}");
    }
    for line in ["YQ==", "7", " ", "YQ==7", "YQ== 7 7", "YQ== Yg== 7"] {
        assert_eq!(refused(line).0, 1, "{line:?}");
    }
}

#[test]
fn lines_end_with_either_character_or_both() {
    let expected = [(b"a".to_vec(), 0), (b"b".to_vec(), 1), (b"c".to_vec(), 2)];
    for end in ["\n", "\r", "\r\n", "\n\n", "\n\r", "\r\r\n\r"] {
        let lines = ["YQ== 0", "Yg== 1", "Yw== 2"];
        assert_eq!(read(&lines.join(end)), expected, "{end:?}");
        assert_eq!(read(&(lines.join(end) + end)), expected, "{end:?}");
    }
    assert_eq!(read(""), []);
    // "\r\n" ends one line, "\n\r" two.
    assert_eq!(refused("YQ== 0\r\n\r\nYg==").0, 3);
    assert_eq!(refused("YQ== 0\n\rYg==").0, 3);
}

#[test]
fn ranks_are_whole_numbers_as_python_writes_them() {
    let largest = MAX_ID.to_string();
    let numbers =
        [("0", 0), ("007", 7), ("+12", 12), ("1_000", 1000), ("+1_0_9", 109), (&*largest, MAX_ID)];
    for (rank, id) in numbers {
        assert_eq!(read(&format!("YQ== {rank}")), [(b"a".to_vec(), id)], "{rank}");
    }
    let too_large = (u64::from(MAX_ID) + 1).to_string();
    let others =
        [&*too_large, "-1", "+", "++1", "_1", "1_", "1__0", "1.0", "0x1", "1a", "/", ":", "٣"];
    for rank in others.into_iter().chain(["99999999999999999999999999"]) {
        let (line, reason) = refused(&format!("Yg== 1\nYQ== {rank}"));
        assert_eq!(line, 2);
        assert!(reason.contains(&format!("a whole number from 0 to {MAX_ID}")), "{reason}");
    }
}

#[test]
fn padding_alone_is_an_empty_token() {
    for line in ["= 5", "== 5"] {
        assert_eq!(read(line), [(vec![], 5)]);
    }
    assert_eq!(read("/+A= 5"), [(vec![0xff, 0xe0], 5)]);
    for line in ["YQ 0", "Y=== 0", "Y!Q= 0", "YR== 0", "-_A= 0"] {
        assert!(refused(line).1.starts_with("bad base64"), "{line:?}");
    }
}

#[test]
fn a_refused_line_is_shown_but_not_all_of_a_long_one() {
    let line = "!".repeat(80);
    assert!(refused(&line).1.ends_with(&format!(" in \"{line}\"")));
    let reason = refused(&(line.clone() + "?")).1;
    assert!(reason.ends_with(&format!(" in \"{line}\"... (81 bytes)")), "{reason}");
    assert!(refused("\u{1}\"").1.ends_with(r#" in "\x01\"""#));
}

#[test]
fn lists_are_sorted_by_id() {
    let list = |tokens: &[(&str, u32)]| RankList::try_from(tokens.to_vec()).unwrap();
    let pairs = |list: RankList| -> Vec<(String, u32)> {
        let text = |token: &[u8]| String::from_utf8(token.to_vec()).unwrap();
        list.iter().map(|(token, id)| (text(token), id)).collect()
    };
    let mut first = list(&[("bb", 5), ("", 1)]);
    assert!(!first.is_empty() && list(&[]).is_empty());
    first.append(&list(&[("c", 3), ("dd", 9)]));
    assert_eq!((first.len(), first.byte_len(), first.ids()), (4, 5, &[5, 1, 3, 9][..]));
    let expected = [("", 1), ("c", 3), ("bb", 5), ("dd", 9)];
    let expected = expected.map(|(token, id)| (token.to_owned(), id));
    assert_eq!(pairs(first.sorted_by_id().unwrap()), expected);
    let sorted = list(&[("b", 2), ("a", 1)]).sorted_by_id().unwrap();
    assert_eq!(pairs(sorted), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let shared = |tokens: &[(&str, u32)]| match list(tokens).sorted_by_id() {
        Err(Error::Vocabulary(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let reason = "the tokens b\"a\" and b\"b\" share the rank 2; give each its own";
    assert_eq!(shared(&[("a", 2), ("b", 2)]), reason);
    let long = "x".repeat(61);
    let reason = shared(&[("y", 3), (&long[..60], 2), (&long, 2)]);
    let expected = format!("b\"{0}\" and b\"{0}\"... (61 bytes) share", &long[..60]);
    assert!(reason.contains(&expected), "{reason}");
}

#[test]
fn lists_have_no_more_tokens_than_a_vocabulary_may_have() {
    let mut list = RankList::default();
    (0..MAX_TOKENS as u32).for_each(|id| list.push(b"", id));
    assert_eq!(list.clone().sorted_by_id().unwrap().len(), MAX_TOKENS);
    list.push(b"", MAX_TOKENS as u32);
    let Err(Error::Vocabulary(reason)) = list.sorted_by_id() else { panic!("not refused") };
    let expected = format!("{} tokens are more than the {MAX_TOKENS} that", MAX_TOKENS + 1);
    assert!(reason.starts_with(&expected), "{reason}");
}
