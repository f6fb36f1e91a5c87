#include "engine/cable_report.h"

namespace ringbolt::engine {
namespace {

template <class T>
std::byte* put(std::byte* to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    *to++ = static_cast<std::byte>(value >> (8 * i));
  }
  return to;
}

template <class T>
const std::byte* take(const std::byte* from, T& value) {
  value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(*from++) << (8 * i));
  }
  return from;
}

}  // namespace

std::array<std::byte, kReportBytes> emit(const CableReport& report) {
  std::array<std::byte, kReportBytes> bytes;
  std::byte* to = bytes.data();
  for (size_t size = 0; size < 2; ++size) {
    to = put(put(to, report.sent[size]), report.lost[size].count);
    for (const uint16_t number : report.lost[size].latest) {
      to = put(to, number);
    }
  }
  return bytes;
}

std::optional<CableReport> parse_report(std::span<const std::byte> beat) {
  if (beat.size() < kReportBytes) {
    return std::nullopt;
  }
  CableReport report;
  const std::byte* from = beat.data();
  for (size_t size = 0; size < 2; ++size) {
    from = take(take(from, report.sent[size]), report.lost[size].count);
    for (uint16_t& number : report.lost[size].latest) {
      from = take(from, number);
    }
  }
  return report;
}

}  // namespace ringbolt::engine
