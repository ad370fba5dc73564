//! Reads orders from CSV: refuses bad lines one by one, and a file that is no CSV as a whole.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

/// The columns that the header must name.
const COLUMNS: [&str; 5] = [
    "order_id",
    "customer_id",
    "sku",
    "quantity",
    "unit_price_cents",
];

/// The 500 orders that come with the example.
pub const SAMPLE: &str = include_str!("../data/orders.csv");

const MAX_ID_CHARS: usize = 60;
const MAX_QUANTITY: i64 = 1_000_000;
const MAX_UNIT_PRICE_CENTS: i64 = 100_000_000;

/// The orders of a file.
#[derive(Debug, Default)]
pub struct Intake {
    /// Good lines, in the file's order.
    pub orders: Vec<OrderLine>,
    /// Bad lines, in the file's order.
    pub refused: Vec<Refusal>,
}

/// One good line.
#[derive(Debug, PartialEq, Eq)]
pub struct OrderLine {
    /// Where it stands, from 1.
    pub line: usize,
    pub order_id: String,
    pub customer_id: String,
    pub sku: String,
    pub quantity: i64,
    pub unit_price_cents: i64,
}

/// Why a line was refused.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Where it stands, from 1.
    pub line: usize,
    pub column: &'static str,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.reason
        )
    }
}

/// The file as a whole is of no use.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error("the orders can't be read from {name}: {source}")]
    Unreadable {
        name: String,
        source: std::io::Error,
    },
    #[error("{name} is empty; it needs a header ({}) and one line for each order", COLUMNS.join(","))]
    Empty { name: String },
    #[error("{name} holds a header and no orders; add one line for each order")]
    NoOrders { name: String },
    #[error("{name} is not a CSV file of orders: {why}")]
    NotCsv { name: String, why: &'static str },
    #[error(
        "the header of {name} does not fit: {problem}; it must name the columns {}",
        COLUMNS.join(",")
    )]
    Header { name: String, problem: String },
}

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> Result<Intake, IntakeError> {
    let (name, bytes) = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        ("standard input".to_owned(), read.map(|_| bytes))
    } else {
        (path.display().to_string(), std::fs::read(path))
    };
    match bytes {
        Ok(bytes) => parse(&name, &bytes),
        Err(source) => Err(IntakeError::Unreadable { name, source }),
    }
}

/// Reads the bytes of a file called `name`.
///
/// Line by line, since none of the columns can hold a line break: so a quote that is never closed
/// spoils its own line and not the rest of the file, and line numbers are the editor's.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Intake, IntakeError> {
    let name = name.to_owned();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(IntakeError::Empty { name });
    }
    if let Some(why) = foreign_format(bytes) {
        return Err(IntakeError::NotCsv { name, why });
    }
    let mut lines = bytes
        .split(|byte| *byte == b'\n')
        .zip(1..)
        .filter(|(line, _)| !line.trim_ascii().is_empty());
    let header = lines.next().map(|(line, _)| line).unwrap_or_default();
    let places = match Places::find(header) {
        Ok(places) => places,
        Err(problem) => return Err(IntakeError::Header { name, problem }),
    };

    let mut intake = Intake::default();
    let mut seen = HashMap::new();
    for (text, line) in lines {
        match places.read(text, line, &mut seen) {
            Ok(order) => intake.orders.push(order),
            Err((column, reason)) => intake.refused.push(Refusal {
                line,
                column,
                reason,
            }),
        }
    }
    if intake.orders.is_empty() && intake.refused.is_empty() {
        return Err(IntakeError::NoOrders { name });
    }
    Ok(intake)
}

/// Recognises what people hand over by mistake.
fn foreign_format(bytes: &[u8]) -> Option<&'static str> {
    let start = bytes.trim_ascii_start();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        Some("it is UTF-16 text; save it as UTF-8")
    } else if start.starts_with(b"<") {
        Some("it looks like HTML or XML")
    } else if start.starts_with(b"{") || start.starts_with(b"[") {
        Some("it looks like JSON")
    } else if start.starts_with(b"PK\x03\x04") {
        Some("it is a zip archive or a spreadsheet; export it as CSV")
    } else if bytes.iter().take(8192).any(|byte| *byte == 0) {
        Some("it is binary (it holds NUL bytes)")
    } else {
        None
    }
}

/// Where each of [`COLUMNS`] stands in a line.
struct Places {
    index: [usize; COLUMNS.len()],
    width: usize,
}

type Bad = (&'static str, String);

impl Places {
    fn find(header: &[u8]) -> Result<Self, String> {
        let fields = split(header).ok_or("a quote is not closed")?;
        let names: Vec<String> = fields
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
            .collect();
        if names.len() == 1 && (header.contains(&b';') || header.contains(&b'\t')) {
            return Err("its fields are not separated by commas".to_owned());
        }
        let mut index = [0; COLUMNS.len()];
        let mut missing = Vec::new();
        for (column, place) in COLUMNS.into_iter().zip(&mut index) {
            let mut found = (0..).zip(&names).filter(|(_, name)| *name == column);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => *place = at,
                (Some(_), Some(_)) => return Err(format!("{column} stands there twice")),
                (None, _) => missing.push(column),
            }
        }
        if !missing.is_empty() {
            return Err(format!("{} is missing", missing.join(", ")));
        }
        Ok(Self {
            index,
            width: names.len(),
        })
    }

    fn read(
        &self,
        text: &[u8],
        line: usize,
        seen: &mut HashMap<String, usize>,
    ) -> Result<OrderLine, Bad> {
        let [order_id, customer_id, sku, quantity, unit_price] = COLUMNS;
        let fields =
            split(text).ok_or((order_id, "a quote is not closed on this line".to_owned()))?;
        if fields.len() != self.width {
            return Err((
                self.first_missing(fields.len()),
                format!(
                    "the line has {} fields and the header {}",
                    fields.len(),
                    self.width
                ),
            ));
        }
        let mut values = COLUMNS.into_iter().zip(self.index).map(|(column, at)| {
            let field = fields.get(at).map(Vec::as_slice).unwrap_or_default();
            match std::str::from_utf8(field) {
                Ok(value) => Ok(value.trim()),
                Err(_) => Err((column, "it is not UTF-8 text".to_owned())),
            }
        });
        let mut next = || values.next().unwrap_or(Ok(""));
        let order = OrderLine {
            line,
            order_id: id(order_id, next()?)?,
            customer_id: id(customer_id, next()?)?,
            sku: id(sku, next()?)?,
            quantity: number(quantity, next()?, MAX_QUANTITY)?,
            unit_price_cents: number(unit_price, next()?, MAX_UNIT_PRICE_CENTS)?,
        };
        // The first line wins: an order is placed once, and which of two was meant nobody can tell.
        match seen.insert(order.order_id.clone(), line) {
            None => Ok(order),
            Some(first) => {
                seen.insert(order.order_id.clone(), first);
                Err((
                    order_id,
                    format!(
                        "the order {} stands on line {first} already",
                        order.order_id
                    ),
                ))
            }
        }
    }

    fn first_missing(&self, fields: usize) -> &'static str {
        let gone = COLUMNS
            .into_iter()
            .zip(self.index)
            .filter(|(_, at)| *at >= fields);
        gone.min_by_key(|(_, at)| *at)
            .map_or("(after the last)", |(column, _)| column)
    }
}

/// The fields of one line; `None` when a quote is not closed.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    if line.iter().filter(|byte| **byte == b'"').count() % 2 == 1 {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(line);
    let record = reader.byte_records().next()?.ok()?;
    Some(record.iter().map(<[u8]>::to_vec).collect())
}

fn id(column: &'static str, value: &str) -> Result<String, Bad> {
    let reason = if value.is_empty() {
        "it is empty".to_owned()
    } else if value.chars().count() > MAX_ID_CHARS {
        format!("it is longer than {MAX_ID_CHARS} characters")
    } else if value.chars().any(char::is_control) {
        "it holds a control character".to_owned()
    } else {
        return Ok(value.to_owned());
    };
    Err((column, reason))
}

fn number(column: &'static str, value: &str, most: i64) -> Result<i64, Bad> {
    match value.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => {
            let shown: String = value.chars().take(40).collect();
            Err((
                column,
                format!("{shown:?} is not a whole number from 1 to {most}"),
            ))
        }
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
