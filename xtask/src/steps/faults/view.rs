use std::io::IsTerminal;

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use super::grid;
use super::lines::{Cell, End, Line};

/// Shows the runs while they go on, and all of them at the end.
pub(super) struct View {
    json: bool,
    bar: ProgressBar,
    runs: u64,
    done: u64,
    ends: Vec<Result<End, NotTried>>,
}

pub(super) struct NotTried {
    pub(super) cell: Cell,
    why: String,
}

/// How the runs ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) broken: usize,
    pub(super) not_exercised: usize,
}

impl View {
    /// A view that prints a table, or the program's own lines.
    pub(super) fn new(json: bool) -> Self {
        // It hides itself where standard error is no terminal.
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} effects {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            json,
            bar,
            runs: 0,
            done: 0,
            ends: Vec::new(),
        }
    }

    /// Whether no run has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// Takes in what happened; `text` is how it was told.
    pub(super) fn show(&mut self, line: Line, text: &str) {
        match line {
            Line::Runs { runs } => self.runs = runs,
            Line::Begin { cell, messages } => {
                let (number, runs) = (self.done + 1, self.runs);
                self.bar.set_prefix(format!("{number}/{runs} {cell}"));
                self.bar.reset();
                self.bar.set_length(messages);
            }
            Line::Progress { messages, effects } => {
                let length = self.bar.length().unwrap_or(0);
                self.bar.set_length(length.max(messages));
                self.bar.set_position(effects);
            }
            Line::End(end) => {
                let seconds = end.millis as f64 / 1000.0;
                let word = if end.clean { "clean" } else { "BROKEN" };
                let news = format!(
                    "{}: {word}, {} messages in {seconds:.1} s",
                    end.cell, end.messages
                );
                self.end(Ok(end), &news, text);
            }
            Line::NotExercised { cell, why } => {
                let news = format!("{cell}: not exercised: {why}");
                self.end(Err(NotTried { cell, why }), &news, text);
            }
        }
    }

    /// Prints all of it.
    pub(super) fn finish(self) -> Sum {
        self.bar.finish_and_clear();
        let broken = self.ends.iter().flatten().filter(|end| !end.clean);
        let sum = Sum {
            broken: broken.count(),
            not_exercised: self.ends.iter().filter(|end| end.is_err()).count(),
        };
        if self.json {
            return sum;
        }
        println!("\n{}", table(&self.ends));
        if let Some(grid) = grid::of_brokers(&self.ends) {
            println!("\n{grid}");
        }
        for end in self.ends.iter().flatten() {
            let place = &end.cell;
            if !end.remark.is_empty() {
                println!("{place}: {}", end.remark);
            }
            for problem in &end.problems {
                println!("{place}: PROBLEM: {problem}");
            }
            if !end.clean {
                println!("{place}: the same dice again with --seed {}", end.seed);
            }
        }
        for end in self.ends.iter().filter_map(|end| end.as_ref().err()) {
            println!("{}: not exercised: {}", end.cell, end.why);
        }
        let Sum {
            broken,
            not_exercised,
        } = sum;
        let runs = self.ends.len();
        println!("{runs} runs: {broken} broken, {not_exercised} not exercised");
        sum
    }

    fn end(&mut self, end: Result<End, NotTried>, news: &str, text: &str) {
        self.done += 1;
        self.ends.push(end);
        self.bar.suspend(|| match self.json {
            true => println!("{text}"),
            false if std::io::stderr().is_terminal() => {}
            // Without a bar, this is the progress.
            false => println!("{news}"),
        });
    }
}

fn table(ends: &[Result<End, NotTried>]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "fault",
        "database",
        "broker",
        "messages",
        "lost",
        "duplicated",
        "out of order",
        "torn",
        "strikes",
        "repeats",
        "peak MiB",
        "seconds",
        "",
    ]);
    for end in ends {
        table.add_row(match end {
            Ok(end) => vec![
                end.cell.fault.clone(),
                end.cell.database.clone(),
                end.cell.broker.clone(),
                end.messages.to_string(),
                end.lost.to_string(),
                end.duplicated.to_string(),
                end.out_of_order.to_string(),
                end.torn.to_string(),
                end.strikes.to_string(),
                end.repeats.to_string(),
                format!("{:.0}", end.peak_memory as f64 / 1024.0),
                format!("{:.1}", end.millis as f64 / 1000.0),
                if end.clean { "clean" } else { "BROKEN" }.to_owned(),
            ],
            Err(end) => {
                let Cell {
                    fault,
                    database,
                    broker,
                } = end.cell.clone();
                let mut row = vec![fault, database, broker];
                row.resize(12, "-".to_owned());
                row.push("not exercised".to_owned());
                row
            }
        });
    }
    for column in table.column_iter_mut().skip(3).take(9) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(clean: bool) -> String {
        format!(
            r#"{{"line":"end","fault":"poison","database":"sqlite",
            "broker":"harness","seed":7,"clean":{clean},
            "messages":10,"lost":0,"duplicated":0,"out_of_order":0,"torn":0,"strikes":1,
            "repeats":0,"problems":[],"remark":"","millis":1500,"peak_memory":20480}}"#
        )
    }

    fn sum_of(lines: &[&str]) -> Sum {
        let mut view = View::new(false);
        for line in lines {
            view.show(Line::read(line).unwrap(), line);
        }
        view.finish()
    }

    #[test]
    fn broken_runs_and_those_not_tried_are_counted() {
        let not_tried = r#"{"line":"not_exercised","fault":"f","database":"postgres",
            "broker":"nats","why":"no server"}"#;
        let sum = sum_of(&[&end(true), &end(false), not_tried]);
        let expected = Sum {
            broken: 1,
            not_exercised: 1,
        };
        assert_eq!(sum, expected);
    }

    #[test]
    fn a_row_has_its_figures() {
        let Some(Line::End(end)) = Line::read(&end(true)) else {
            panic!("a line of an end");
        };
        let text = table(&[Ok(end)]).to_string();
        for figure in ["poison", "sqlite", " 10 ", " 20 ", "1.5", "clean"] {
            assert!(text.contains(figure), "{text}");
        }
    }
}
