//! The CSV files as Parquet, for reading thousands of runs at once.
//!
//! The columns are those of the CSV files: a column of numbers is DOUBLE, any other one UTF-8 text, and so are names;
//! an empty cell is null. Values are stored plainly, uncompressed, in one row group.

use std::io;
use std::sync::Arc;

use csv::Reader;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Columns that are text, even if they are empty or look like numbers.
const TEXTS: [&str; 10] =
    ["flow", "protocol", "from", "to", "node", "link", "counter", "kind", "name", "hash_ok"];

/// The Parquet file for a CSV file.
pub(crate) fn of_csv(csv: &[u8]) -> io::Result<Vec<u8>> {
    let mut reader = Reader::from_reader(csv);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        for (column, cell) in columns.iter_mut().zip(record?.iter()) {
            column.push((!cell.is_empty()).then(|| cell.to_owned()));
        }
    }
    let columns = columns.into_iter().zip(&names).map(|(cells, name)| Column::of(cells, name));
    let columns: Vec<Column> = columns.collect();
    written(&names, &columns).map_err(io::Error::other)
}

/// A column's values, without the nulls.
enum Values {
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
}

struct Column {
    values: Values,
    /// Definition levels: 1 for each cell that has a value, else 0.
    there: Vec<i16>,
}

impl Column {
    fn of(cells: Vec<Option<String>>, name: &str) -> Self {
        let there = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let numbers: Option<Vec<f64>> = cells.iter().flatten().map(|cell| cell.parse().ok()).collect();
        let values = match numbers.filter(|_| !TEXTS.contains(&name)) {
            Some(numbers) => Values::Numbers(numbers),
            None => Values::Texts(cells.into_iter().flatten().map(|cell| cell.into_bytes().into()).collect()),
        };
        Self { values, there }
    }
}

fn written(names: &[String], columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): (&String, &Column)| {
        let field = match column.values {
            Values::Numbers(_) => Type::primitive_type_builder(name, Physical::DOUBLE),
            Values::Texts(_) => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String)),
        };
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = names.iter().zip(columns).map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("hopcast").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("hopcast ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut into) = group.next_column()? else { break };
        match &column.values {
            Values::Numbers(values) => {
                into.typed::<DoubleType>().write_batch(values, Some(&column.there), None)?;
            }
            Values::Texts(values) => {
                into.typed::<ByteArrayType>().write_batch(values, Some(&column.there), None)?;
            }
        }
        into.close()?;
    }
    group.close()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    const CSV: &str = "run,loss,flow,goodput_mbps,jitter_ms\n0,5 %,bulk,1.5,\n1,10 %,bulk,0.1,0.25\n";

    #[test]
    fn what_is_read_back_is_what_the_csv_file_holds() {
        let file = bytes::Bytes::from(of_csv(CSV.as_bytes()).unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 2);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows[0].get_double(0).unwrap(), 0.0);
        assert_eq!(rows[1].get_string(1).unwrap(), "10 %");
        assert_eq!((rows[0].get_double(3).unwrap(), rows[1].get_double(3).unwrap()), (1.5, 0.1));
        assert!(rows[0].get_double(4).is_err(), "an empty cell is null");
        assert_eq!(rows[1].get_double(4).unwrap(), 0.25);
    }

    #[test]
    fn a_name_is_text_though_it_looks_like_a_number() {
        let file = bytes::Bytes::from(of_csv(b"run,flow,hash_ok\n0,7,\n").unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        assert_eq!(row.get_string(1).unwrap(), "7");
        let hash_ok = reader.metadata().file_metadata().schema_descr().column(2).physical_type();
        assert_eq!(hash_ok, Physical::BYTE_ARRAY, "of a run without files too");
    }

    #[test]
    fn the_same_rows_are_the_same_bytes_and_none_are_a_file_too() {
        assert_eq!(of_csv(CSV.as_bytes()).unwrap(), of_csv(CSV.as_bytes()).unwrap());
        assert!(of_csv(b"run,flow\n").unwrap().starts_with(b"PAR1"));
    }
}
