//! "Did you mean": the known name closest to a mistyped one.

/// The closest of `names`, if one is close enough to be what was meant.
pub(super) fn closest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (typed.chars().count() / 3).clamp(1, 3);
    names
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The number of insertions, removals, replacements and swaps of neighbours between two names
/// (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, character) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX);
            let replaced = at(&above, column) + usize::from(character != *other);
            let removed = at(&above, column + 1) + 1;
            let inserted = at(&current, column) + 1;
            let mut best = replaced.min(removed).min(inserted);
            let swapped = column
                .checked_sub(1)
                .filter(|earlier| {
                    right.get(*earlier) == Some(&character) && previous == Some(*other)
                })
                .map(|earlier| at(&before, earlier) + 1);
            if let Some(swapped) = swapped {
                best = best.min(swapped);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(character);
    }
    above.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("version", "version"), 0);
        assert_eq!(distance("verison", "version"), 1);
        assert_eq!(distance("versions", "version"), 1);
        assert_eq!(distance("key", "name"), 4);
        assert_eq!(distance("", "key"), 3);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["version", "name", "key"];
        assert_eq!(closest("vresion", names.into_iter()), Some("version"));
        assert_eq!(closest("kye", names.into_iter()), Some("key"));
        assert_eq!(closest("schema", names.into_iter()), None);
    }
}
