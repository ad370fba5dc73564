use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct Changed<T> {
    pub value: T,
}

#[domain_event(version = 1)]
pub struct Named<'a> {
    pub name: &'a str,
}

fn main() {}
