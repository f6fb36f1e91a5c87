#include "table.h"

#include <libsmartcols.h>

#include <cerrno>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::tools {
namespace {

int json_type(Table::Kind kind) {
  switch (kind) {
    case Table::Kind::kNumber:
      return SCOLS_JSON_NUMBER;
    case Table::Kind::kBool:
      return SCOLS_JSON_BOOLEAN;
    case Table::Kind::kText:
      break;
  }
  return SCOLS_JSON_STRING;
}

}  // namespace

Table::Table(const char* name, const std::vector<Column>& columns, bool is_json)
    : table_(scols_new_table()), columns_(columns), is_json_(is_json) {
  if (!table_) {
    throw base::Error(ENOMEM, "scols_new_table", name);
  }
  scols_table_set_name(table_.get(), name);
  scols_table_enable_json(table_.get(), is_json ? 1 : 0);
  for (const Column& column : columns) {
    libscols_column* made =
        scols_table_new_column(table_.get(), column.title, 0, column.kind == Kind::kNumber ? SCOLS_FL_RIGHT : 0);
    if (made == nullptr) {
      throw base::Error(ENOMEM, "scols_table_new_column", column.title);
    }
    scols_column_set_json_type(made, json_type(column.kind));
  }
}

void Table::add(const std::vector<std::string>& cells) {
  RINGBOLT_ASSERT(cells.size() == columns_.size());
  libscols_line* line = scols_table_new_line(table_.get(), nullptr);
  if (line == nullptr) {
    throw base::Error(ENOMEM, "scols_table_new_line", "table");
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool is_bool_for_people = columns_[i].kind == Kind::kBool && !is_json_ && !cells[i].empty();
    const std::string text = is_bool_for_people ? (cells[i] == "1" ? "yes" : "no") : cells[i];
    if (!text.empty()) {
      scols_line_set_data(line, i, text.c_str());  // copies
    }
  }
}

void Table::print() const { scols_print_table(table_.get()); }

void Table::Release::operator()(libscols_table* table) const { scols_unref_table(table); }

}  // namespace ringbolt::tools
