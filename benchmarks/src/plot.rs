mod bars;
mod curves;
mod ink;

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::backend::SVGBackend;
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};
use plotters::style::WHITE;

use crate::line::Line;

use self::bars::Bars;
use self::curves::Curves;

/// Where the picture is drawn; its coordinates are pixels.
type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

const WIDTH: u32 = 960;

/// Draws the ratios against their goals, and the curves below them.
pub(crate) fn draw(lines: &[Line], file: &Path) -> Result<()> {
    let bars = Bars::new(lines);
    let curves = Curves::new(lines);
    let size = (WIDTH, bars.height() + curves.height());
    let canvas = SVGBackend::new(file, size).into_drawing_area();
    // The book has dark themes too: the picture brings its own paper.
    canvas.fill(&WHITE).map_err(failed)?;
    let (above, below) = canvas.split_vertically(bars.height());
    bars.draw(&above)?;
    curves.draw(&below)?;
    canvas.present().map_err(failed)
}

/// The errors of plotters hold on to the canvas.
fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing the plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Samples;
    use crate::line::Goal;

    fn line(name: &str, goal: Goal, ratio: f64) -> Line {
        let (ours, theirs) = (Samples::from([ratio * 100.0]), Samples::from([100.0]));
        Line::compare(name, "commits/s", goal, &ours, &theirs)
    }

    fn drawn(lines: &[Line]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        draw(lines, &file).unwrap();
        std::fs::read_to_string(file).unwrap()
    }

    #[test]
    fn every_name_is_in_the_picture() {
        let mut lines = Vec::new();
        for connections in [1_u16, 8, 32] {
            let name = format!("commit, one event, {connections} connections | BEGIN, COMMIT");
            let ratio = 1.0 + f64::from(connections) / 10.0;
            lines.push(line(&name, Goal::AtLeast(1.6), ratio).at("commit", connections.into()));
        }
        lines.push(line("a <b> & 'c' | nothing", Goal::AtMost(0.3), 0.001));
        lines.push(line("alone", Goal::AtLeast(1.0), 50_000.0));
        lines.push(line("no figure | at all", Goal::AtLeast(1.0), f64::NAN));
        let svg = drawn(&lines);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for connections in [1, 8, 32] {
            assert!(svg.contains(&format!("commit, one event, {connections} connections")));
        }
        for text in [
            "a &lt;b&gt; &amp; &apos;c&apos;",
            "alone",
            "no figure",
            "beside: at all",
            "beside: BEGIN, COMMIT",
        ] {
            assert!(svg.contains(text), "{text} is not in the picture");
        }
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn what_meets_its_goal_has_another_colour_and_another_mark() {
        let met = drawn(&[line("a", Goal::AtLeast(1.0), 2.0)]);
        let missed = drawn(&[line("a", Goal::AtLeast(1.0), 0.5)]);
        let colour = format!("#{:02X}{:02X}{:02X}", ink::MET.0, ink::MET.1, ink::MET.2);
        let count = |svg: &str| svg.matches(&colour).count();
        assert!(count(&met) > count(&missed), "{colour}");
    }

    #[test]
    fn a_picture_without_lines_is_one_too() {
        assert!(drawn(&[]).starts_with("<svg"));
    }
}
