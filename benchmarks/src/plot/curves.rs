use std::collections::BTreeMap;

use anyhow::Result;
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::{BindKeyPoints as _, IntoLogRange as _};
use plotters::coord::ranged1d::Ranged;
use plotters::element::{Circle, TriangleMarker};
use plotters::series::{LineSeries, PointSeries};
use plotters::style::{Color as _, RGBColor, ShapeStyle, TRANSPARENT};

use super::ink::{FAINT, Font, GRID, MET, OTHERS, Side, TEXT, line, write};
use super::{Canvas, failed};
use crate::line::Line;

const HEIGHT: u32 = 320;
const ABREAST: usize = 2;

/// Where the legend stands in a panel, and where the chart begins below it.
const TITLE: i32 = 22;
const LEGEND: i32 = 42;
const LEGEND_LINE: i32 = 16;
const LEFT: i32 = 16;

/// A panel for each curve that lines are points of.
pub(super) struct Curves<'a>(Vec<Panel<'a>>);

/// Ours and those beside it, over the same places.
struct Panel<'a> {
    name: &'a str,
    unit: &'a str,
    series: Vec<Series<'a>>,
}

struct Series<'a> {
    name: &'a str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

impl<'a> Curves<'a> {
    pub(super) fn new(lines: &'a [Line]) -> Self {
        let mut curves: BTreeMap<&str, Vec<(f64, &Line)>> = BTreeMap::new();
        for line in lines {
            if let Some((curve, x)) = &line.point {
                curves.entry(curve).or_default().push((*x, line));
            }
        }
        Self(
            curves
                .into_iter()
                .map(|(name, points)| Panel::new(name, &points))
                .collect(),
        )
    }

    pub(super) fn height(&self) -> u32 {
        let rows = self.0.len().div_ceil(ABREAST);
        u32::try_from(rows).unwrap_or(0) * HEIGHT
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let places = canvas.split_evenly((self.0.len().div_ceil(ABREAST), ABREAST));
        for (panel, place) in self.0.iter().zip(&places) {
            panel.draw(place)?;
        }
        Ok(())
    }
}

impl<'a> Panel<'a> {
    fn new(name: &'a str, lines: &[(f64, &'a Line)]) -> Self {
        let mut ours = Vec::new();
        let mut others: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
        for (x, line) in lines {
            // Several lines may tell our figure of one place, each beside another.
            if !ours.iter().any(|(known, _)| known == x) {
                ours.push((*x, line.ours));
            }
            let beside = line.parts().1.unwrap_or("theirs");
            match others.iter_mut().find(|(name, _)| *name == beside) {
                Some((_, points)) => points.push((*x, line.theirs)),
                None => others.push((beside, vec![(*x, line.theirs)])),
            }
        }
        let others = others.into_iter().zip(OTHERS.into_iter().cycle());
        let others = others.map(|((name, points), colour)| Series::new(name, colour, points));
        let series = std::iter::once(Series::new("ours", MET, ours)).chain(others);
        Self {
            name,
            unit: lines.first().map_or("", |(_, line)| &line.unit),
            series: series.collect(),
        }
    }

    fn draw(&self, canvas: &Canvas<'_>) -> Result<()> {
        let title = format!("{}, {}", self.name, self.unit);
        let font = Font::new(14.0, TEXT, 440.0).bold();
        write(canvas, &title, font, (LEFT, TITLE), Side::After)?;
        let mut y = LEGEND;
        for series in &self.series {
            line(canvas, vec![(LEFT, y), (LEFT + 22, y)], series.colour, 3)?;
            let font = Font::new(12.0, TEXT, 400.0);
            write(canvas, series.name, font, (LEFT + 30, y), Side::After)?;
            y += LEGEND_LINE;
        }
        self.chart(canvas, y)
    }

    fn chart(&self, canvas: &Canvas<'_>, top: i32) -> Result<()> {
        let places = self.places();
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return Ok(());
        };
        let highest = self.all().map(|(_, y)| y).fold(0.0_f64, f64::max);
        // A single place still needs a range.
        let range = (first / 1.2..last * 1.2).log_scale();
        let mut chart = ChartBuilder::on(canvas)
            .margin_top(top)
            .margin_right(24)
            .margin_bottom(8)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(range.with_key_points(places), 0.0..highest.max(1e-9) * 1.08)
            .map_err(failed)?;
        let label = |text: &str| Font::new(11.0, FAINT, 200.0).style(text, Side::Around);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(label("1"))
            .x_desc("connections")
            .axis_desc_style(label("connections"))
            .x_label_formatter(&ToString::to_string)
            .y_label_formatter(&|figure: &f64| thousands(*figure))
            .y_labels(6)
            .draw()
            .map_err(failed)?;
        for series in &self.series {
            series.draw(&mut chart)?;
        }
        Ok(())
    }

    /// Where there are figures, ascending.
    fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.all().map(|(x, _)| x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    fn all(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.series
            .iter()
            .flat_map(|series| series.points.iter().copied())
    }
}

impl<'a> Series<'a> {
    fn new(name: &'a str, colour: RGBColor, mut points: Vec<(f64, f64)>) -> Self {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self {
            name,
            colour,
            points,
        }
    }

    /// Ours has circles at its figures, the others triangles.
    fn draw<X, Y>(
        &self,
        chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    ) -> Result<()>
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let points = || self.points.iter().copied();
        let style = ShapeStyle::from(self.colour).stroke_width(3);
        chart
            .draw_series(LineSeries::new(points(), style))
            .map_err(failed)?;
        let filled = self.colour.filled();
        if self.colour == MET {
            chart
                .draw_series(PointSeries::<_, _, Circle<_, _>, _>::new(
                    points(),
                    5,
                    filled,
                ))
                .map_err(failed)?;
        } else {
            chart
                .draw_series(PointSeries::<_, _, TriangleMarker<_, _>, _>::new(
                    points(),
                    7,
                    filled,
                ))
                .map_err(failed)?;
        }
        Ok(())
    }
}

fn thousands(figure: f64) -> String {
    if figure >= 1_000.0 {
        format!("{} k", figure / 1_000.0)
    } else {
        figure.to_string()
    }
}
