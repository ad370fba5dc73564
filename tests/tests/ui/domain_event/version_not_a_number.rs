use outbox_runtime::prelude::*;

#[domain_event(version = "1")]
pub struct Text;

#[domain_event(version = -1)]
pub struct Negative;

#[domain_event(version = 1.5)]
pub struct Fraction;

#[domain_event(version)]
pub struct Nothing;

#[domain_event(version = 1u8)]
pub struct Suffix;

#[domain_event(version = 4294967296)]
pub struct TooLarge;

fn main() {}
