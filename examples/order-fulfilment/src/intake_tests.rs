#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;

const HEADER: &str = "order_id,customer_id,sku,quantity,unit_price_cents\n";

fn lines(text: &str) -> Intake {
    parse("f.csv", format!("{HEADER}{text}").as_bytes()).unwrap()
}

fn refusal(line: &str) -> Refusal {
    let mut intake = lines(&format!("good,c,s,1,1\n{line}\nalso-good,c,s,1,1\n"));
    assert_eq!(intake.orders.len(), 2, "the rest goes on");
    assert_eq!(intake.refused.len(), 1, "{line}");
    let refusal = intake.refused.remove(0);
    assert_eq!(refusal.line, 3);
    refusal
}

fn error(bytes: &[u8]) -> String {
    parse("f.csv", bytes).unwrap_err().to_string()
}

#[test]
fn the_sample_holds_500_good_orders() {
    let intake = parse("sample", SAMPLE.as_bytes()).unwrap();
    assert_eq!((intake.orders.len(), intake.refused.len()), (500, 0));
}

#[test]
fn bom_crlf_blanks_quotes_order_of_columns_and_extra_columns_are_fine() {
    let text = "\u{feff}sku, Quantity ,note,unit_price_cents,customer_id,order_id\r\n\r\n\"s\",2,\"a, \"\"b\"\"\",30, c ,o\r\n";
    let intake = parse("f.csv", text.as_bytes()).unwrap();
    assert!(intake.refused.is_empty(), "{:?}", intake.refused);
    let expected = OrderLine {
        line: 3,
        order_id: "o".into(),
        customer_id: "c".into(),
        sku: "s".into(),
        quantity: 2,
        unit_price_cents: 30,
    };
    assert_eq!(intake.orders, [expected]);
}

#[test]
fn the_last_line_needs_no_line_break() {
    assert_eq!(lines("o,c,s,1,1").orders.len(), 1);
}

#[test]
fn bad_lines_name_their_column_and_reason() {
    for (line, column, reason) in [
        (",c,s,1,1", "order_id", "empty"),
        ("o,  ,s,1,1", "customer_id", "empty"),
        ("o,c,s,0,1", "quantity", "\"0\""),
        ("o,c,s,-3,1", "quantity", "\"-3\""),
        ("o,c,s,1.5,1", "quantity", "\"1.5\""),
        ("o,c,s,99999999999999999999,1", "quantity", "whole number"),
        ("o,c,s,1,12.99", "unit_price_cents", "\"12.99\""),
        ("o,c,s,1,", "unit_price_cents", "\"\""),
        ("o,c,s,1", "unit_price_cents", "4 fields"),
        ("o", "customer_id", "1 fields"),
        ("o,c,s,1,1,1", "(after the last)", "6 fields"),
        ("\"o,c,s,1,1", "order_id", "quote"),
        ("o,c,a\u{7}b,1,1", "sku", "control"),
        ("good,c,s,1,1", "order_id", "line 2 already"),
    ] {
        let refusal = refusal(line);
        assert_eq!(refusal.column, column, "{line}");
        assert!(
            refusal.reason.contains(reason),
            "{line}: {}",
            refusal.reason
        );
    }
    let long = "x".repeat(61);
    assert_eq!(refusal(&format!("{long},c,s,1,1")).column, "order_id");
}

#[test]
fn a_line_that_is_not_utf8_is_refused_alone() {
    let mut bytes = HEADER.as_bytes().to_vec();
    bytes.extend(b"o1,c,M\xfcller,1,1\no2,c,s,1,1\n");
    let intake = parse("f.csv", &bytes).unwrap();
    assert_eq!(intake.orders.len(), 1);
    assert_eq!(
        intake.refused[0].to_string(),
        "line 2, column sku: it is not UTF-8 text"
    );
}

#[test]
fn files_that_are_no_orders_get_a_sentence() {
    assert!(error(b"").contains("is empty"));
    assert!(error(b"\xef\xbb\xbf \r\n\n").contains("is empty"));
    assert!(error(HEADER.as_bytes()).contains("no orders"));
    assert!(error(b"<!doctype html><html></html>").contains("HTML"));
    assert!(error(b"{\"a\": 1}").contains("JSON"));
    assert!(error(b"\x7fELF\x00\x00\x01").contains("binary"));
    assert!(error(b"PK\x03\x04abc").contains("zip"));
    assert!(error(b"\xff\xfeo\x00r\x00").contains("UTF-16"));
    assert!(error(b"hello\nworld\n").contains("header"));
    assert!(error(b"order_id;customer_id;sku;quantity;unit_price_cents\n").contains("commas"));
    assert!(
        error(b"order_id,sku,quantity\n1,2,3\n")
            .contains("customer_id, unit_price_cents is missing")
    );
    assert!(error(b"sku,sku,order_id,customer_id,quantity,unit_price_cents\n").contains("twice"));
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let missing = read(Path::new("no/such/file.csv")).unwrap_err().to_string();
    assert!(missing.contains("no/such/file.csv"), "{missing}");
    assert!(read(Path::new(".")).is_err());
}
