#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::base {

/// Appends numbers to bytes, little-endian: what a ByteReader reads in the same order. Not thread-safe. Owns what it
/// has written. Throws std::bad_alloc alone, with all that was put before still there.
class ByteWriter {
 public:
  /// T: integers and enumerations of up to 8 bytes.
  template <class T>
  void put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      // By shifts: the same bytes on any machine.
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  /// With its length before it, in 16 bits: of longer text the beginning.
  void put_text(std::string_view text) {
    text = text.substr(0, UINT16_MAX);
    put(static_cast<uint16_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text)));
  }
  // The reference lives until the next put.
  const std::vector<std::byte>& bytes() const& { return bytes_; }
  // Ends the writer: it is empty afterwards.
  std::vector<std::byte> bytes() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads from the front of any bytes. Once something is missing, is_sound() is false and all that is read is 0. Not
/// thread-safe. The bytes are the caller's, and outlive the reader and the spans that it returns. For text of
/// strangers: it never reads past the end, and its users need to look at is_sound() only once, at the end, as long as
/// they take 0 for a count.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
  // As put(); 0 if not all of it is there. Of an enumeration any value may come: who reads one checks it.
  T take() {
    const std::span<const std::byte> taken = take_bytes(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < taken.size(); ++i) {
      value |= static_cast<uint64_t>(taken[i]) << (8 * i);
    }
    return static_cast<T>(value);
  }
  /// Empty if there are not so many.
  std::span<const std::byte> take_bytes(size_t length) {
    if (left_.size() < length) {
      is_sound_ = false;
      left_ = {};
      return {};
    }
    const std::span<const std::byte> taken = left_.first(length);
    left_ = left_.subspan(length);
    return taken;
  }
  /// What put_text() has written, if it has up to `most` bytes; control characters read as '?'.
  std::string take_text(size_t most) {
    const auto length = take<uint16_t>();
    if (length > most) {
      is_sound_ = false;
      left_ = {};
      return {};
    }
    std::string text;
    for (const std::byte one : take_bytes(length)) {
      const auto c = static_cast<char>(one);
      text.push_back(static_cast<unsigned char>(c) < ' ' ? '?' : c);
    }
    return text;
  }
  // May be asked in any state: of an unsound reader nothing is left.
  std::span<const std::byte> rest() const { return left_; }
  bool is_at_end() const { return left_.empty(); }
  bool is_sound() const { return is_sound_; }

 private:
  std::span<const std::byte> left_;
  bool is_sound_ = true;
};

}  // namespace ringbolt::base
