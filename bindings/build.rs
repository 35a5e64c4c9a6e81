//! Turns the rank files in `data/` into vocabulary images, which become part of the module.

use std::path::Path;
use std::{env, fs};

use bpe_core::{Vocabulary, rank_file};

const NAMES: [&str; 5] = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "qwen"];

fn main() {
    // For `cfg(Py_GIL_DISABLED)`.
    pyo3_build_config::use_pyo3_cfgs();
    assert_eq!(
        env::var("CARGO_CFG_TARGET_ENDIAN").as_deref(),
        Ok("little"),
        "vocabulary images are read in place and little-endian"
    );
    let data = Path::new("../data");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::thread::scope(|scope| {
        for name in NAMES {
            let path = data.join(format!("{name}.tiktoken"));
            println!("cargo:rerun-if-changed={}", path.display());
            let image = Path::new(&out).join(format!("{name}.image"));
            scope.spawn(move || write_image(&path, &image));
        }
    });
}

fn write_image(ranks: &Path, image: &Path) {
    let contents = fs::read(ranks).unwrap_or_else(|error| panic!("{}: {error}", ranks.display()));
    let vocabulary = rank_file::parse(&contents)
        .and_then(Vocabulary::build)
        .unwrap_or_else(|error| panic!("{}: {error}", ranks.display()));
    fs::write(image, vocabulary.to_image())
        .unwrap_or_else(|error| panic!("{}: {error}", image.display()));
}
