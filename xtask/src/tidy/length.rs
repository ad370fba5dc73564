//! No source file is longer than one sitting.

use super::Breach;
use super::source::Source;

const LONGEST: usize = 500;

pub(super) fn check(source: &Source) -> Vec<Breach> {
    if source.lines <= LONGEST || !source.file.contains("/src/") {
        return Vec::new();
    }
    let message = format!("{} lines; split it, {LONGEST} is the limit", source.lines);
    vec![Breach {
        line: source.lines,
        message,
    }]
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn a_file_above_the_limit_is_a_breach() {
        assert_eq!(
            breaches("outbox-macros/src/a.rs", &"\n".repeat(500)),
            [""; 0]
        );
        assert_eq!(
            breaches("examples/shop/src/a.rs", &"\n".repeat(501)),
            ["501: 501 lines; split it, 500 is the limit"]
        );
    }
}
