#include "base/tcp_meaning.h"

#include <cerrno>

#include <fmt/format.h>

namespace ringbolt::base {
namespace {

std::string_view symbol_of(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "ECONNREFUSED";
    case EHOSTUNREACH:
      return "EHOSTUNREACH";
    case ENETUNREACH:
      return "ENETUNREACH";
    case EADDRNOTAVAIL:
      return "EADDRNOTAVAIL";
    case ETIMEDOUT:
      return "ETIMEDOUT";
    case ENOENT:
      return "ENOENT";
    default:
      return {};
  }
}

}  // namespace

std::string tcp_advice(int error) {
  const std::string_view symbol = symbol_of(error);
  for (const TcpMeaning& meaning : kTcpMeanings) {
    if (meaning.symbol == symbol) {
      return fmt::format("{}: {}", meaning.cause, meaning.remedy);
    }
  }
  return {};
}

}  // namespace ringbolt::base
