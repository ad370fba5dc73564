//! Refuses what can't be an aggregate.

use quote::ToTokens;
use syn::{Field, Ident, Item, ItemStruct, LitStr, Type};

use crate::attribute::Arguments;
use crate::diagnostics::Diagnostics;
use crate::item::{
    Column, check_distinct, check_identifier, check_text, field_arguments, named_struct,
    refuse_conditional, refuse_generics, snake_case, unraw,
};

use super::attr::{AggregateAttribute, FIELD_SYNTAX};
use super::model::{Aggregate, Persistence};

pub(super) fn validate(
    item: &Item,
    attribute: &AggregateAttribute,
    diagnostics: &Diagnostics,
) -> Option<Aggregate> {
    if let Some(type_name) = &attribute.type_name {
        check_text(type_name, "the type name of an aggregate", diagnostics);
    }
    if let Some(table) = &attribute.table {
        check_table(table, diagnostics);
    }
    let item = named_struct(item, "aggregate", diagnostics)?;
    refuse_generics(
        &item.generics,
        "aggregate",
        "an aggregate has one table; write a struct for each",
        diagnostics,
    );
    let fields: Vec<MarkedField<'_>> = item
        .fields
        .iter()
        .filter_map(|field| MarkedField::read(field, diagnostics))
        .collect();
    let id = the_id(item, &fields, diagnostics);
    let root = the_root(item, &fields, diagnostics);
    for field in &fields {
        field.check_marks(attribute.custom, diagnostics);
    }
    let (id, root) = (id?, root?);
    let columns: Vec<(&MarkedField<'_>, Column)> = fields
        .iter()
        .filter(|field| field.skip.is_none())
        .map(|field| (field, field.column(is(field, root), diagnostics)))
        .collect();
    if !attribute.custom {
        check_distinct(columns.iter().map(|(_, column)| column), diagnostics);
    }
    let mut id_column = None;
    let mut version_column = String::new();
    let mut others = Vec::new();
    for (field, column) in columns {
        if is(field, id) {
            id_column = Some(column);
        } else if is(field, root) {
            version_column = column.name;
        } else {
            others.push(column);
        }
    }
    let name = unraw(&item.ident);
    let persistence = if attribute.custom {
        Persistence::Custom
    } else {
        Persistence::Mapped {
            table: attribute
                .table
                .as_ref()
                .map_or_else(|| snake_case(&name), LitStr::value),
            version_column,
            others,
            skipped: fields
                .iter()
                .filter(|field| field.skip.is_some())
                .map(|field| (field.ident.clone(), field.field.ty.clone()))
                .collect(),
        }
    };
    Some(Aggregate {
        ident: item.ident.clone(),
        type_name: attribute.type_name.as_ref().map_or(name, LitStr::value),
        events: attribute.events.clone(),
        id: id_column?,
        root: root.ident.clone(),
        persistence,
    })
}

/// A field with what its attributes say.
struct MarkedField<'a> {
    field: &'a Field,
    ident: &'a Ident,
    arguments: Arguments,
    id: Option<Ident>,
    root: Option<Ident>,
    skip: Option<Ident>,
}

impl<'a> MarkedField<'a> {
    fn read(field: &'a Field, diagnostics: &Diagnostics) -> Option<Self> {
        refuse_conditional(field, diagnostics);
        let arguments = field_arguments(field, &FIELD_SYNTAX, diagnostics);
        let flag = |name: &str| arguments.flag(name, diagnostics).cloned();
        Some(Self {
            field,
            ident: field.ident.as_ref()?,
            id: flag("id"),
            root: flag("root"),
            skip: flag("skip"),
            arguments,
        })
    }

    fn column(&self, is_root: bool, diagnostics: &Diagnostics) -> Column {
        let mut column = Column::read(
            self.ident.clone(),
            self.field.ty.clone(),
            &self.arguments,
            diagnostics,
        );
        if is_root && self.arguments.get("column").is_none() {
            column.name = "version".to_owned();
        }
        column
    }

    /// Refuses marks that contradict each other or say nothing.
    fn check_marks(&self, custom: bool, diagnostics: &Diagnostics) {
        if let (Some(_), Some(root)) = (&self.id, &self.root) {
            diagnostics.error(
                root,
                "one field can't be both `id` and `root`; mark two fields",
            );
        }
        let special = [(&self.id, "id"), (&self.root, "root")]
            .into_iter()
            .find_map(|(mark, name)| mark.as_ref().map(|_| name));
        for key in ["json", "embed", "skip", "column", "prefix"] {
            let Some(argument) = self.arguments.get(key) else {
                continue;
            };
            if custom {
                diagnostics.error(
                    &argument.key,
                    format!("`persistence = custom` maps the columns itself; remove `{key}`"),
                );
            } else if let Some(special) = special.filter(|_| key != "column") {
                diagnostics.error(
                    &argument.key,
                    format!("the `{special}` field is one column of its own; remove `{key}`"),
                );
            } else if self.skip.is_some() && key != "skip" {
                diagnostics.error(
                    &argument.key,
                    format!("a skipped field is not stored; remove `{key}` or `skip`"),
                );
            }
        }
    }
}

fn is(one: &MarkedField<'_>, other: &MarkedField<'_>) -> bool {
    one.ident == other.ident
}

/// The field marked `id`, else the one named so.
fn the_id<'f, 'a>(
    item: &ItemStruct,
    fields: &'f [MarkedField<'a>],
    diagnostics: &Diagnostics,
) -> Option<&'f MarkedField<'a>> {
    let marked: Vec<_> = fields
        .iter()
        .filter_map(|field| field.id.as_ref().map(|mark| (field, mark)))
        .collect();
    if let Some(((first, _), others)) = marked.split_first() {
        for (_, mark) in others {
            diagnostics.error(
                mark,
                format!(
                    "`{}` is the id already; an aggregate has one, so make a key of several parts one type",
                    first.ident
                ),
            );
        }
        return Some(first);
    }
    let named = fields.iter().find(|field| field.ident == "id");
    match named {
        Some(field) if field.skip.is_some() => {
            diagnostics.error(
                &field.skip,
                "the `id` field is stored; remove `skip`, or mark another field `#[aggregate(id)]`",
            );
        }
        Some(_) => {}
        None => diagnostics.error(
            &item.ident,
            "no field is the id of this aggregate; name one `id`, or mark it `#[aggregate(id)]`",
        ),
    }
    named
}

/// The field marked `root`, else the one of type `AggregateRoot`.
fn the_root<'f, 'a>(
    item: &ItemStruct,
    fields: &'f [MarkedField<'a>],
    diagnostics: &Diagnostics,
) -> Option<&'f MarkedField<'a>> {
    let marked: Vec<_> = fields.iter().filter(|field| field.root.is_some()).collect();
    let typed: Vec<_> = fields
        .iter()
        .filter(|field| is_root_type(&field.field.ty))
        .collect();
    let candidates = if marked.is_empty() { typed } else { marked };
    let Some((first, others)) = candidates.split_first() else {
        diagnostics.error(
            &item.ident,
            "this aggregate has no root; add a field `root: AggregateRoot`, which holds the version and the raised events",
        );
        return None;
    };
    for other in others {
        let place = match &other.root {
            Some(mark) => mark.to_token_stream(),
            None => other.field.ty.to_token_stream(),
        };
        diagnostics.error(
            place,
            format!(
                "`{}` is the root already; an aggregate has one version, so remove the other",
                first.ident
            ),
        );
    }
    Some(first)
}

fn is_root_type(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "AggregateRoot"),
        _ => false,
    }
}

/// A table's name, alone or after the name of its schema.
fn check_table(table: &LitStr, diagnostics: &Diagnostics) {
    let text = table.value();
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 2 {
        diagnostics.error(
            table,
            "a table is named by itself or after its schema: `orders` or `shop.orders`",
        );
        return;
    }
    for part in parts {
        if let Err(message) = check_identifier(part, "table name") {
            diagnostics.error(table, message);
        }
    }
}
