use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
fn paid() {}

#[domain_event(version = 1)]
trait Paid {}

#[domain_event(version = 1)]
type Alias = String;

fn main() {}
