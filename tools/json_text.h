#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

/// An optional member is null, or its value.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& to, const std::optional<T>& from) { to = from ? json(*from) : json(nullptr); }
  static void from_json(const json& from, std::optional<T>& to) {
    to = from.is_null() ? std::nullopt : std::optional(from.get<T>());
  }
};

namespace ringbolt::tools {

/// What one process of ours tells another: a struct that nlohmann's macros describe, as one line of JSON. Thread-safe.
template <class T>
std::string to_line(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// And back; any bytes are safe to pass. Numbers that are too large for their member are cut: who is told them looks at
/// what must hold. Thread-safe.
template <class T>
std::optional<T> from_line(std::string_view text) {
  try {
    return nlohmann::json::parse(text).get<T>();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringbolt::tools
