#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ringbolt::tools {

/// Help as wide as the terminal, with what each option takes in words.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  std::string row(const std::string& name, const std::string& text) const;

  size_t width_;
};

/// Of subcommands that take a command line after "--".
class CommandFormatter : public HelpFormatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
};

}  // namespace ringbolt::tools
