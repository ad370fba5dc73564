//! A Rust file, taken apart into code, string contents and comments.

/// A source file as the rules see it.
///
/// `code` and `strings` are as long as the file and have the same lines; all
/// that does not belong to them is blank. Comments and test modules are in neither.
#[derive(Debug)]
pub(super) struct Source {
    /// Path from the workspace's root, with `/`.
    pub(super) file: String,
    pub(super) code: String,
    pub(super) strings: String,
    pub(super) lines: usize,
}

impl Source {
    pub(super) fn read(file: &str, text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut splitter = Splitter::new(&characters);
        splitter.split();
        let (mut code, mut strings) = (splitter.code, splitter.strings);
        let whole = file.ends_with("/tests.rs") || file.contains("/tests/");
        blank_tests(&mut code, &mut strings, whole);
        Self {
            file: file.to_owned(),
            code: code.into_iter().collect(),
            strings: strings.into_iter().collect(),
            lines: text.lines().count(),
        }
    }

    /// The part of the path under `folder`, for a file in it.
    pub(super) fn under(&self, folder: &str) -> Option<&str> {
        self.file.strip_prefix(folder)?.strip_prefix('/')
    }
}

/// The number of the line that holds a byte of `text`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Where `word` stands in `text` as a word of its own.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = text
                .get(..*at)
                .and_then(|before| before.chars().next_back());
            let after = text
                .get(at + word.len()..)
                .and_then(|after| after.chars().next());
            !before.is_some_and(is_name) && !after.is_some_and(is_name)
        })
}

pub(super) fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

struct Splitter<'a> {
    text: &'a [char],
    at: usize,
    code: Vec<char>,
    strings: Vec<char>,
}

#[derive(Clone, Copy)]
enum Part {
    Code,
    Text,
    Comment,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a [char]) -> Self {
        Self {
            text,
            at: 0,
            code: Vec::new(),
            strings: Vec::new(),
        }
    }

    fn split(&mut self) {
        while let Some(character) = self.peek(0) {
            match (character, self.peek(1)) {
                ('/', Some('/')) => self.take_while(Part::Comment, |next| next != '\n'),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if self.starts_a_word() => self.raw_string(),
                ('b', Some('r')) if self.starts_a_word() => {
                    self.take(Part::Code);
                    self.raw_string();
                }
                ('\'', _) => self.quote(),
                _ => self.take(Part::Code),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn starts_a_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        !before.is_some_and(|before| is_name(*before) && *before != 'b')
    }

    fn take(&mut self, part: Part) {
        let Some(character) = self.peek(0) else {
            return;
        };
        let blank = if character == '\n' { '\n' } else { ' ' };
        self.code.push(if matches!(part, Part::Code) {
            character
        } else {
            blank
        });
        self.strings.push(if matches!(part, Part::Text) {
            character
        } else {
            blank
        });
        self.at += 1;
    }

    fn take_while(&mut self, part: Part, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.take(part);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let (Some(first), second) = (self.peek(0), self.peek(1)) {
            let step = match (first, second) {
                ('/', Some('*')) => 1,
                ('*', Some('/')) => -1,
                _ => 0,
            };
            self.take(Part::Comment);
            if step != 0 {
                self.take(Part::Comment);
                depth += step;
                if depth == 0 {
                    return;
                }
            }
        }
    }

    fn string(&mut self) {
        self.take(Part::Code);
        while let Some(character) = self.peek(0) {
            match character {
                '"' => return self.take(Part::Code),
                '\\' => {
                    self.take(Part::Text);
                    self.take(Part::Text);
                }
                _ => self.take(Part::Text),
            }
        }
    }

    /// `r"..."`, `r#"..."#`; a raw identifier (`r#type`) is code.
    fn raw_string(&mut self) {
        self.take(Part::Code);
        let mut hashes = 0;
        while self.peek(0) == Some('#') {
            self.take(Part::Code);
            hashes += 1;
        }
        if self.peek(0) != Some('"') {
            return;
        }
        self.take(Part::Code);
        while let Some(character) = self.peek(0) {
            let ends = character == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if ends {
                return (0..=hashes).for_each(|_| self.take(Part::Code));
            }
            self.take(Part::Text);
        }
    }

    /// A character (`'"'`, `'\''`) or a lifetime (`'a`).
    fn quote(&mut self) {
        self.take(Part::Code);
        let character = self.peek(0) == Some('\\') || self.peek(1) == Some('\'');
        if !character {
            return;
        }
        if self.peek(0) == Some('\\') {
            self.take(Part::Text);
        }
        self.take(Part::Text);
        self.take_while(Part::Text, |next| next != '\'' && next != '\n');
        self.take(Part::Code);
    }
}

/// Blanks the items under `#[cfg(test)]`, or everything.
fn blank_tests(code: &mut [char], strings: &mut [char], everything: bool) {
    let mark: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut from = 0;
    while from < code.len() {
        let rest = code.get(from..).unwrap_or_default();
        let found = rest.windows(mark.len()).position(|window| window == mark);
        let (start, end) = match found {
            _ if everything => (0, code.len()),
            Some(at) => (from + at, end_of_item(code, from + at)),
            None => return,
        };
        for text in [&mut *code, &mut *strings] {
            for character in text.get_mut(start..end).unwrap_or_default() {
                if *character != '\n' {
                    *character = ' ';
                }
            }
        }
        from = end;
    }
}

/// The end of the item that starts at `from`: its `;` or its closing brace.
fn end_of_item(code: &[char], from: usize) -> usize {
    let mut depth = 0_usize;
    for (index, character) in code.iter().enumerate().skip(from) {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return index + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::read("a.rs", text).code
    }

    fn strings(text: &str) -> String {
        Source::read("a.rs", text)
            .strings
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_are_neither_code_nor_strings() {
        let text = "one // two \"three\"\nfour /* five /* six */ seven */ eight";
        assert_eq!(
            code(text).split_whitespace().collect::<Vec<_>>(),
            ["one", "four", "eight"]
        );
        assert_eq!(strings(text), "");
    }

    #[test]
    fn strings_are_no_code() {
        let text = r###"f("a // b \" c", r#"d " e"#, br"x", 'g', '"', '\'', b'h'); g::<'i>()"###;
        assert_eq!(strings(text), "a // b \\\" c d \" e x g \" \\' h");
        assert!(code(text).contains("g::<'i>()"));
        assert_eq!(code("r#type = 1"), "r#type = 1");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "/* one\ntwo */\nlet a = \"three\nfour\";\nhere";
        let code = code(text);
        assert_eq!(line_of(&code, code.find("here").unwrap()), 5);
    }

    #[test]
    fn test_items_are_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests { fn b() { \"c\" } }\nd\n#[cfg(test)]\nmod e;\nf";
        assert_eq!(
            code(text).split_whitespace().collect::<Vec<_>>(),
            ["a", "d", "f"]
        );
        assert_eq!(strings(text), "");
        assert_eq!(Source::read("src/x/tests.rs", "use a;").code.trim(), "");
    }

    #[test]
    fn a_word_is_found_only_as_a_whole() {
        assert_eq!(
            words("async fn asynchronous() { my_async }", "async").count(),
            1
        );
    }
}
