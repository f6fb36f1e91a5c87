#include "base/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ringbolt::base {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment, three rows of its table at a time.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kMostLetters = 64;  // nobody mistypes more, and the table grows with the product
  std::string best;
  // One slip for every three letters, one more for the shortest: "up" and "ip" are near enough.
  size_t best_distance = word.size() > kMostLetters ? 0 : word.size() / 3 + (word.size() < 3 ? 2 : 1);
  for (const std::string& one : known) {
    const bool is_begun = word.size() > 1 && one.starts_with(word);
    const size_t distance = is_begun ? 0 : best_distance == 0 ? 1 : edit_distance(word, one);
    // Of a short word nothing may be left.
    if (distance < best_distance && (is_begun || distance < std::max(word.size(), one.size()))) {
      best = one;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace ringbolt::base
