#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/parsed.h"

/// What the readers of JSON files share. Only for source files: the JSON library stays out of our interfaces.
namespace ringbolt::base {

/// Keeps the order of fields, so that messages and rewritten files follow the author's.
using Json = nlohmann::ordered_json;

/// Thrown by the functions below and caught where the file is read, which makes a ParseError of it.
struct JsonRefusal {
  ParseError error;
};

/// `place`: the path of the value ("nodes[3].ports"), empty: the text as a whole. `line`: from 1, or 0.
[[noreturn]] void stop(const std::string& place, const std::string& problem, size_t line = 0);

/// A part of somebody's text that is safe to print.
std::string quote(std::string_view text);

/// Any bytes are safe to pass. Refuses nesting deeper than `max_depth` and keys that occur twice in one object (the
/// last would win silently).
Json parse_json(std::string_view text, int max_depth);

/// Refuses what is no object, and fields that are not in `known`: a slip in a name would otherwise pass as a missing
/// option.
void check_fields(const Json& object, const std::string& place, std::initializer_list<std::string_view> known);
/// These return references into `object` or `value`, which must outlive them; each throws JsonRefusal where it is not
/// so. field() takes an object that check_fields() has seen.
const Json& field(const Json& object, const std::string& place, const char* key);
const Json& list(const Json& value, const std::string& place, size_t least, size_t most);
const std::string& text_of(const Json& value, const std::string& place);
uint32_t number_of(const Json& value, const std::string& place, uint32_t least, uint32_t most);

}  // namespace ringbolt::base
