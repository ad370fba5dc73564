use anyhow::{Result, ensure};

/// What is changed in a source file before it is checked again, another time each round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Edit(u32);

impl Edit {
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Changes a line in a handler's body.
    pub(super) fn handler(self, text: &str) -> Result<String> {
        let number = self.0 + 1;
        change(text, "event.price_cents + ", &format!("{number});"))
    }

    /// Changes the type of an event's field.
    pub(super) fn event(self, text: &str) -> Result<String> {
        let kind = if self.0.is_multiple_of(2) {
            "i64,"
        } else {
            "u32,"
        };
        change(text, "pub width_mm: ", kind)
    }
}

/// Replaces what follows `start` on its line, which stands there once.
fn change(text: &str, start: &str, end: &str) -> Result<String> {
    ensure!(text.matches(start).count() == 1, "no single {start:?}");
    let lines = text.lines().map(|line| match line.split_once(start) {
        Some((before, _)) => format!("{before}{start}{end}\n"),
        None => format!("{line}\n"),
    });
    let changed: String = lines.collect();
    ensure!(changed != text, "{start:?} is as it was");
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edit_changes_a_line_of_each_way_of_writing() {
        for way in [
            include_str!("../../../compile/attributes.rs"),
            include_str!("../../../compile/by_hand.rs"),
        ] {
            let mut text = way.to_owned();
            let mut edit = Edit::default();
            for _ in 0..3 {
                edit = edit.next();
                for changed in [edit.handler(&text).unwrap(), edit.event(&text).unwrap()] {
                    let differing = text.lines().zip(changed.lines()).filter(|(a, b)| a != b);
                    assert_eq!(differing.count(), 1);
                }
                text = edit.event(&edit.handler(&text).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn an_edit_that_changes_nothing_is_none() {
        assert!(change("a: 1,\n", "a: ", "1,").is_err());
        assert!(change("b: 1,\n", "a: ", "2,").is_err());
    }
}
