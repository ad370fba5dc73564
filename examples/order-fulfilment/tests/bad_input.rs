//! What the program says when it can't do its work: one clear sentence, and exit code 2.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::{SqliteFile, program};

const HEADER: &str = "order_id,customer_id,sku,quantity,unit_price_cents\n";

fn refused(command: &mut Command, sentence: &str) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(sentence),
        "{sentence:?} is missing in {said:?}"
    );
    assert!(output.stdout.is_empty(), "a result and an error at once");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn each_kind_of_bad_file() {
    let database = SqliteFile::new();
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(&[u8], &str); 9] = [
        (b"", "is empty"),
        (b"\xef\xbb\xbf\r\n", "is empty"),
        (HEADER.as_bytes(), "a header and no orders"),
        (
            b"order_id,sku\n1,2\n",
            "customer_id, quantity, unit_price_cents is missing",
        ),
        (b"o1,c1,s1,2,100\no2,c1,s1,2,100\n", "header"),
        (
            b"order_id;customer_id;sku;quantity;unit_price_cents\n",
            "not separated by commas",
        ),
        (b"<html><body>orders</body></html>", "HTML"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (b"PK\x03\x04rest", "zip archive or a spreadsheet"),
    ];
    for (bytes, sentence) in kinds {
        let file = folder.path().join("orders.csv");
        std::fs::write(&file, bytes).unwrap();
        let said = refused(
            program(&database.url()).arg("--orders").arg(&file),
            sentence,
        );
        assert!(said.contains("orders.csv"), "the file is named: {said}");
    }
}

#[test]
fn a_missing_file_a_folder_and_an_empty_standard_input() {
    let database = SqliteFile::new();
    let url = database.url();
    refused(
        program(&url).args(["--orders", "no/such/orders.csv"]),
        "no/such/orders.csv",
    );
    refused(program(&url).args(["--orders", "."]), "can't be read");
    refused(
        program(&url).args(["--orders", "-"]).stdin(Stdio::null()),
        "standard input is empty",
    );
}

#[test]
fn standard_input_is_read() {
    let database = SqliteFile::new();
    let mut child = program(&database.url())
        .args(["--orders", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(format!("{HEADER}o1,c1,s1,2,100").as_bytes())
        .unwrap();
    drop(input);
    let books = support::books(&child.wait_with_output().unwrap());
    assert_eq!(
        books.pointer("/totals/orders_confirmed"),
        Some(&1.into()),
        "{books:#}"
    );
}

#[test]
fn a_database_that_is_not_there() {
    refused(
        &mut program("mysql://root@localhost/shop"),
        "can't be a \"mysql\" URL",
    );
    refused(&mut program("no/such/folder/shop.db"), "can't be opened");
    refused(&mut program(""), "has no name");
    refused(&mut program(":memory:"), "would not outlive");
    refused(
        &mut program("postgres://shop@localhost:notaport/shop"),
        "can't be understood",
    );
    let said = refused(
        &mut program("postgres://shop:topsecret@127.0.0.1:1/shop"),
        "PostgreSQL database shop at 127.0.0.1:1 can't be reached",
    );
    assert!(!said.contains("topsecret"), "{said}");
}

#[test]
fn a_file_that_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.txt");
    std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
    refused(&mut program(file.to_str().unwrap()), "can't be opened");
}

#[test]
fn options_out_of_range() {
    let database = SqliteFile::new();
    for share in ["1.5", "-0.1", "NaN", "many"] {
        refused(
            program(&database.url()).args(["--duplicates", share]),
            "from 0 to 1",
        );
    }
    refused(
        program(&database.url()).args(["--relay-restarts", "101"]),
        "0..=100",
    );
}
