//! Build script: converts the rank files in `data/` to vocabulary images for the native module.
//!
//! Also writes `builtin_images.rs`, the table of images that `src/builtin.rs` includes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use bpe_core::{Vocabulary, rank_file};

fn main() {
    // Sets `cfg(Py_GIL_DISABLED)`.
    pyo3_build_config::use_pyo3_cfgs();
    assert_eq!(
        env::var("CARGO_CFG_TARGET_ENDIAN").as_deref(),
        Ok("little"),
        "vocabulary images are read in place and little-endian"
    );
    let data = Path::new("../data");
    // A directory counts as changed when a file is added or removed.
    println!("cargo:rerun-if-changed={}", data.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let names = rank_files(data);
    std::thread::scope(|scope| {
        for name in &names {
            let path = data.join(format!("{name}.tiktoken"));
            println!("cargo:rerun-if-changed={}", path.display());
            let image = out.join(format!("{name}.image"));
            scope.spawn(move || write_image(&path, &image));
        }
    });
    let table = out.join("builtin_images.rs");
    fs::write(&table, image_table(&names)).unwrap_or_else(|e| panic!("{}: {e}", table.display()));
}

/// Returns the names of the rank files in `data`, without `.tiktoken`, sorted.
fn rank_files(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data).unwrap_or_else(|e| panic!("{}: {e}", data.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("data/ can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tiktoken"))
        .map(|path| path.file_stem().expect("a file").to_str().expect("ASCII").to_owned())
        .collect();
    assert!(!names.is_empty(), "no rank files in {}", data.display());
    names.sort();
    names
}

/// Returns Rust source: an array with `image!(name)` for each name.
fn image_table(names: &[String]) -> String {
    let mut source = String::from("[\n");
    for name in names {
        writeln!(source, "    image!({name:?}),").expect("writing to a string cannot fail");
    }
    source + "]\n"
}

fn write_image(ranks: &Path, image: &Path) {
    let contents = fs::read(ranks).unwrap_or_else(|error| panic!("{}: {error}", ranks.display()));
    let vocabulary = rank_file::parse(&contents)
        .and_then(Vocabulary::from_ranks)
        .unwrap_or_else(|error| panic!("{}: {error}", ranks.display()));
    fs::write(image, vocabulary.to_image())
        .unwrap_or_else(|error| panic!("{}: {error}", image.display()));
}
