#pragma once

#include <string>
#include <vector>

namespace ringbolt::tools {

/// A program to become, as shells start one: found on PATH where its name has no slash, and given to /bin/sh where it
/// is a text that the kernel does not take. What is neither is no program; execvpe() alone would give that to the
/// shell, too, which runs whatever words it finds there. Not thread-safe.
class ProgramStart {
 public:
  explicit ProgramStart(std::vector<std::string> words);
  ProgramStart(const ProgramStart&) = delete;
  ProgramStart& operator=(const ProgramStart&) = delete;

  /// Returns only if it fails; errno says why. Async-signal-safe.
  void become(char* const* environment) const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> shell_words_;
  std::vector<char*> command_;
  std::vector<char*> shell_command_;
  std::string path_;  // empty: execvpe() is to say what is wrong
  bool is_text_;
};

/// An array for exec of those texts, which must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

}  // namespace ringbolt::tools
