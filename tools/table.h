#pragma once

#include <memory>
#include <string>
#include <vector>

struct libscols_table;

namespace ringbolt::tools {

/// A table for people, or the same as JSON. Not thread-safe.
class Table {
 public:
  enum class Kind { kText, kNumber, kBool };
  struct Column {
    const char* title;  ///< in capitals; in JSON in small letters, so it must be one word
    Kind kind = Kind::kText;
  };

  /// `name`: of the list in JSON.
  /// Throws base::Error (ENOMEM), as add() does. `name` and titles are copied.
  Table(const char* name, const std::vector<Column>& columns, bool is_json);

  /// One cell for every column; an empty one is blank, in JSON null. Of bools: "1" or "0" (yes and no for people).
  void add(const std::vector<std::string>& cells);
  /// To stdout: who has printed there before flushes first.
  void print() const;

 private:
  struct Release {
    void operator()(libscols_table* table) const;
  };
  std::unique_ptr<libscols_table, Release> table_;
  std::vector<Column> columns_;
  bool is_json_;
};

}  // namespace ringbolt::tools
