use anyhow::Result;

use super::ink::{FAINT, Font, GRID, MET, MISSED, Side, TEXT, bar, line, write};
use super::{Canvas, WIDTH};
use crate::line::Line;

/// Where things stand from left to right: names, bars, figures, marks.
const NAMES: i32 = 16;
const BARS: std::ops::Range<i32> = 408..776;
const FIGURES: i32 = WIDTH.cast_signed() - 40;
const MARKS: i32 = WIDTH.cast_signed() - 22;

const ROW: u32 = 34;
const HEAD: u32 = 76;
const FOOT: u32 = 24;

/// Where a tick may stand on the scale.
const TICKS: [f64; 13] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// A bar for each line: how far its ratio is beyond its goal, or short of it.
pub(super) struct Bars<'a> {
    lines: &'a [Line],
    scale: Scale,
}

impl<'a> Bars<'a> {
    pub(super) fn new(lines: &'a [Line]) -> Self {
        let scale = Scale::over(lines.iter().map(Line::reached));
        Self { lines, scale }
    }

    pub(super) fn height(&self) -> u32 {
        let rows = u32::try_from(self.lines.len()).unwrap_or(0);
        HEAD + rows * ROW + FOOT
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>) -> Result<()> {
        head(canvas, self.lines)?;
        self.grid(canvas)?;
        let mut top = HEAD.cast_signed();
        for line in self.lines {
            self.row(canvas, line, top)?;
            top += ROW.cast_signed();
        }
        Ok(())
    }

    fn grid(&self, canvas: &Canvas<'_>) -> Result<()> {
        let (top, bottom) = (HEAD.cast_signed(), (self.height() - FOOT).cast_signed());
        for tick in self.scale.ticks() {
            let x = self.scale.place(tick);
            let is_goal = tick == 1.0;
            let (colour, width) = if is_goal { (TEXT, 2) } else { (GRID, 1) };
            line(canvas, vec![(x, top), (x, bottom)], colour, width)?;
            let font = Font::new(11.0, if is_goal { TEXT } else { FAINT }, 60.0);
            let text = if is_goal {
                "goal".to_owned()
            } else {
                format!("{tick} x")
            };
            write(canvas, &text, font, (x, top - 10), Side::Around)?;
        }
        Ok(())
    }

    fn row(&self, canvas: &Canvas<'_>, row: &Line, top: i32) -> Result<()> {
        let middle = top + ROW.cast_signed() / 2;
        name(canvas, row, middle)?;
        let colour = if row.met { MET } else { MISSED };
        let text = if row.ratio.is_finite() {
            format!("{}  ({})", short(row.ratio), row.goal)
        } else {
            format!("no figure  ({})", row.goal)
        };
        let font = Font::new(12.0, colour, 136.0).bold();
        write(canvas, &text, font, (FIGURES, middle), Side::Before)?;
        mark(canvas, row.met, (MARKS, middle))?;
        if row.reached().is_finite() {
            let (goal, end) = (self.scale.place(1.0), self.scale.place(row.reached()));
            let corners = [(goal.min(end), middle - 7), (goal.max(end), middle + 7)];
            bar(canvas, corners, colour)?;
        }
        Ok(())
    }
}

fn head(canvas: &Canvas<'_>, lines: &[Line]) -> Result<()> {
    let met = lines.iter().filter(|line| line.met).count();
    let title = format!("{met} of {} lines meet their goal", lines.len());
    let font = Font::new(17.0, TEXT, 600.0).bold();
    write(canvas, &title, font, (NAMES, 24), Side::After)?;
    let font = Font::new(12.0, FAINT, 380.0);
    let how = "ours beside theirs; to the right of the line is better";
    write(canvas, how, font, (NAMES, 46), Side::After)?;
    let right = Font::new(12.0, FAINT, 136.0);
    write(canvas, "ratio  (goal)", right, (FIGURES, 66), Side::Before)
}

/// What was measured, and below it what beside.
fn name(canvas: &Canvas<'_>, line: &Line, middle: i32) -> Result<()> {
    let room = f64::from(BARS.start - NAMES - 16);
    let (what, beside) = line.parts();
    let font = Font::new(13.0, TEXT, room);
    let Some(beside) = beside else {
        return write(canvas, what, font, (NAMES, middle), Side::After);
    };
    write(canvas, what, font, (NAMES, middle - 7), Side::After)?;
    let (text, font) = (format!("beside: {beside}"), Font::new(11.0, FAINT, room));
    write(canvas, &text, font, (NAMES, middle + 8), Side::After)
}

/// A tick or a cross, drawn, as not every font has them.
fn mark(canvas: &Canvas<'_>, met: bool, (x, y): (i32, i32)) -> Result<()> {
    if met {
        line(
            canvas,
            vec![(x - 5, y), (x - 1, y + 5), (x + 7, y - 6)],
            MET,
            3,
        )
    } else {
        line(canvas, vec![(x - 5, y - 5), (x + 5, y + 5)], MISSED, 3)?;
        line(canvas, vec![(x - 5, y + 5), (x + 5, y - 5)], MISSED, 3)
    }
}

/// Three digits that count.
fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio if ratio >= 0.1 => format!("{ratio:.2}"),
        ratio => format!("{ratio:.3}"),
    }
}

/// A logarithmic scale from left to right, wide enough for all bars; what is beyond the last tick
/// ends at the edge.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.5_f64, 2.0_f64);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value * 0.9);
            high = high.max(value * 1.1);
        }
        let [first, .., last] = TICKS;
        Self {
            low: low.max(first),
            high: high.min(last),
        }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let range = self.low..=self.high;
        TICKS.into_iter().filter(move |tick| range.contains(tick))
    }

    fn place(&self, value: f64) -> i32 {
        let value = value.clamp(self.low, self.high);
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        let width = f64::from(BARS.end - BARS.start);
        #[allow(clippy::cast_possible_truncation)] // between 0 and the width
        let pixels = (part * width).round() as i32;
        BARS.start + pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_holds_all_bars_and_the_goal() {
        let scale = Scale::over([0.25, 8.0, f64::NAN, f64::INFINITY].into_iter());
        assert!(scale.place(0.25) > BARS.start && scale.place(8.0) < BARS.end);
        assert!(scale.place(0.25) < scale.place(1.0) && scale.place(1.0) < scale.place(8.0));
        assert_eq!(scale.place(0.0001), BARS.start);
        assert_eq!(scale.place(9_000.0), BARS.end);
        assert!(scale.ticks().any(|tick| tick == 1.0));
    }

    #[test]
    fn equal_factors_are_equally_long() {
        let scale = Scale::over([0.1, 10.0].into_iter());
        let (half, twice) = (
            scale.place(1.0) - scale.place(0.5),
            scale.place(2.0) - scale.place(1.0),
        );
        assert!((half - twice).abs() <= 1);
    }
}
