#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace ringbolt::fabric {

/// An exact rational number, always in lowest terms. Bounds of a fabric are ratios of small whole numbers, and two
/// plans are compared by them, so nothing here is ever rounded: a result whose terms do not fit into 64 bits throws
/// base::Error (EOVERFLOW). Thread-safe: a value.
class Fraction {
 public:
  constexpr Fraction() = default;
  template <std::integral T>
  Fraction(T whole) : numerator_(checked(std::in_range<int64_t>(whole), static_cast<int64_t>(whole))) {}
  /// `denominator` must not be 0.
  Fraction(int64_t numerator, int64_t denominator);

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }  ///< > 0
  bool is_whole() const { return denominator_ == 1; }
  double value() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }
  /// The largest whole number that is not above it.
  int64_t floor() const;
  /// "5/3", or "2" if it is whole.
  std::string text() const;

  friend Fraction operator+(const Fraction& a, const Fraction& b);
  friend Fraction operator-(const Fraction& a, const Fraction& b);
  friend Fraction operator*(const Fraction& a, const Fraction& b);
  /// `b` must not be 0.
  friend Fraction operator/(const Fraction& a, const Fraction& b);
  Fraction& operator+=(const Fraction& other) { return *this = *this + other; }
  Fraction& operator-=(const Fraction& other) { return *this = *this - other; }

  friend bool operator==(const Fraction&, const Fraction&) = default;
  friend std::strong_ordering operator<=>(const Fraction& a, const Fraction& b);

 private:
  static int64_t checked(bool fits, int64_t value);

  int64_t numerator_ = 0;
  int64_t denominator_ = 1;
};

/// a * b; throws base::Error (EOVERFLOW) beyond 64 bits. Thread-safe.
int64_t checked_product(int64_t a, int64_t b);

/// The least common multiple of two positive numbers; throws as checked_product() does. Thread-safe.
int64_t least_common_multiple(int64_t a, int64_t b);

}  // namespace ringbolt::fabric
