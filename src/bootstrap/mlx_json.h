#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "bootstrap/jaccl_devices.h"

/// What the readers of MLX's files share. For source files only.
namespace ringbolt::bootstrap {

/// One cell: null, a name, or a list of names.
std::vector<std::string> cell_of(const base::Json& value, const std::string& place);
base::Json to_json(const std::vector<std::string>& cell);

/// Printable ASCII without spaces, quotes or backslash, `most_bytes` at most.
const std::string& word_of(const base::Json& value, const std::string& place, size_t most_bytes);

}  // namespace ringbolt::bootstrap
