use anyhow::Result;
use plotters::element::{PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontStyle, IntoFont as _, RGBColor, ShapeStyle, TextStyle};

use super::{Canvas, failed};

/// Colours of the palette by Okabe and Ito, which colour-blind people tell apart.
pub(super) const MET: RGBColor = RGBColor(0, 114, 178);
pub(super) const MISSED: RGBColor = RGBColor(213, 94, 0);
pub(super) const OTHERS: [RGBColor; 4] = [
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 86, 86),
];

pub(super) const TEXT: RGBColor = RGBColor(32, 32, 32);
pub(super) const FAINT: RGBColor = RGBColor(105, 105, 105);
pub(super) const GRID: RGBColor = RGBColor(222, 222, 222);

const FONT: &str = "sans-serif";

/// What plotters divides a size by to write it into an SVG.
const SCALE: f64 = 1.24;

/// About how wide a letter is, in parts of the font's size.
const LETTER: f64 = 0.56;

/// How a text stands to its place: before, around or after it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Before,
    Around,
    After,
}

/// A text that is made smaller where it would be wider than `room` pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Font {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) colour: RGBColor,
    pub(super) room: f64,
}

impl Font {
    pub(super) const fn new(size: f64, colour: RGBColor, room: f64) -> Self {
        Self {
            size,
            bold: false,
            colour,
            room,
        }
    }

    pub(super) const fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub(super) fn style(self, text: &str, side: Side) -> TextStyle<'static> {
        let letters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let fitting = self.room / (f64::from(letters.max(1)) * LETTER);
        let font = (FONT, self.size.min(fitting) * SCALE).into_font();
        let font = font.style(if self.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        });
        let side = match side {
            Side::Before => HPos::Right,
            Side::Around => HPos::Center,
            Side::After => HPos::Left,
        };
        let mut style = TextStyle::from(font).pos(Pos::new(side, VPos::Center));
        style.color = self.colour.to_backend_color();
        style
    }
}

/// Writes a text whose middle line is at the place.
pub(super) fn write(
    canvas: &Canvas<'_>,
    text: &str,
    font: Font,
    at: (i32, i32),
    side: Side,
) -> Result<()> {
    let style = font.style(text, side);
    canvas.draw_text(text, &style, at).map_err(failed)
}

pub(super) fn bar(canvas: &Canvas<'_>, corners: [(i32, i32); 2], colour: RGBColor) -> Result<()> {
    let bar = Rectangle::new(corners, colour.filled());
    canvas.draw(&bar).map_err(failed)
}

pub(super) fn line(
    canvas: &Canvas<'_>,
    points: Vec<(i32, i32)>,
    colour: RGBColor,
    width: u32,
) -> Result<()> {
    let style = ShapeStyle::from(colour).stroke_width(width);
    canvas
        .draw(&PathElement::new(points, style))
        .map_err(failed)
}
