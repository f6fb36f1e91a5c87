#include "text_wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ringbolt::tools {
namespace {

/// Of UTF-8, where all other bytes of a letter are 0b10xxxxxx.
bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }

/// Each of our letters takes one column.
size_t columns_of(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, begins_letter)); }

class Filling {
 public:
  Filling(size_t width, size_t indent) : width_(width), indent_(indent), column_(indent) {}

  void add_paragraph(std::string_view text) {
    for (size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
      const size_t end = std::min(text.find(' ', at), text.size());
      add_word(text.substr(at, end - at));
      at = end;
    }
  }

  void add_line(std::string_view text) {
    text_ += text;
    column_ += columns_of(text);
  }

  void end_line() {
    text_ += '\n';
    column_ = 0;
  }

  std::string take() { return std::move(text_); }

 private:
  void begin_line() {
    text_.append(indent_, ' ');
    column_ = indent_;
  }

  void add_word(std::string_view word) {
    const size_t columns = columns_of(word);
    if (column_ > indent_ && column_ + 1 + columns > width_) {
      end_line();
    }
    if (column_ == 0) {
      begin_line();
    }
    const bool is_first = column_ == indent_;
    text_ += is_first ? "" : " ";
    text_ += word;
    column_ += columns + (is_first ? 0 : 1);
  }

  size_t width_;
  size_t indent_;
  size_t column_;
  std::string text_;
};

}  // namespace

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  Filling filling(width, indent);
  bool is_in_paragraph = false;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool stays = line.empty() || line.front() == ' ';
    if (!is_first && (stays || !is_in_paragraph)) {
      filling.end_line();
    }
    if (stays) {
      filling.add_line(line);
    } else {
      filling.add_paragraph(line);
    }
    // "Examples:" and its like stand alone.
    is_in_paragraph = !stays && line.back() != ':';
  }
  return filling.take();
}

std::string_view first_columns(std::string_view text, size_t columns) {
  size_t end = 0;
  for (size_t begun = 0; end < text.size(); ++end) {
    if (begins_letter(text[end]) && begun++ == columns) {
      break;
    }
  }
  return text.substr(0, end);
}

size_t terminal_columns() {
  constexpr size_t kLeast = 40;
  constexpr size_t kUsual = 80;
  size_t columns = 0;
  if (const char* said = std::getenv("COLUMNS"); said != nullptr) {
    const auto [end, error] = std::from_chars(said, said + std::strlen(said), columns);
    columns = error == std::errc{} && *end == '\0' ? columns : 0;
  }
  winsize window{};
  if (columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    columns = window.ws_col;
  }
  return std::max(columns == 0 ? kUsual : columns, kLeast);
}

}  // namespace ringbolt::tools
