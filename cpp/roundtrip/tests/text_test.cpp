// Foreign texts, messages in foreign memory, and cells.
#include "text.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "cells.hpp"

namespace fletching::roundtrip {
namespace {

TEST(Printable, KeepsUtf8) {
  const std::string text = "a \u00e9 \u77e2 \U0001F3F9";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(static_cast<const char*>(nullptr)), "(NULL)");
}

TEST(Printable, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\uFFFD");
  EXPECT_EQ(printable("\x80x"), "\uFFFDx");
  EXPECT_EQ(printable("\xc3"), "\uFFFD");
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\uFFFD\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "past the last";
  EXPECT_EQ(printable(std::string_view("a\0b\n\x7f", 5)), "a b  ");
}

TEST(WriteMessage, CutsBetweenCharacters) {
  char buffer[4] = "xxx";
  write_message("\u00e9\u00e9", buffer, sizeof(buffer));
  EXPECT_STREQ(buffer, "\u00e9");
  write_message("abc", buffer, sizeof(buffer));
  EXPECT_STREQ(buffer, "abc");
  write_message("", buffer, sizeof(buffer));
  EXPECT_STREQ(buffer, "");
  buffer[0] = 'x';
  write_message("abc", buffer, 0);
  EXPECT_EQ(buffer[0], 'x');
  write_message("abc", nullptr, sizeof(buffer));
}

/// FLETCHING_CELLS for one test.
class CellsVariable {
 public:
  explicit CellsVariable(const char* value) {
    const char* before = std::getenv("FLETCHING_CELLS");
    if (before != nullptr) before_ = before;
    was_set_ = before != nullptr;
    setenv("FLETCHING_CELLS", value, 1);
  }
  CellsVariable(const CellsVariable&) = delete;
  CellsVariable& operator=(const CellsVariable&) = delete;
  ~CellsVariable() {
    if (was_set_) {
      setenv("FLETCHING_CELLS", before_.c_str(), 1);
    } else {
      unsetenv("FLETCHING_CELLS");
    }
  }

 private:
  bool was_set_ = false;
  std::string before_;
};

TEST(Cells, AppendOneLineEach) {
  const std::string path = ::testing::TempDir() + "fletching_cells_test.jsonl";
  std::remove(path.c_str());
  const CellsVariable variable(path.c_str());
  Cell cell;
  cell.backend = "cpu";
  cell.subject_kind = "case";
  cell.subject = "int32";
  cell.direction = "array";
  cell.reason = "a \"quoted\" \\ \n\xff";
  cell.asserted = 5;
  cell.releases = 2;
  EXPECT_EQ(append_cell(cell), "");
  cell.ok = true;
  cell.reason = "";
  EXPECT_EQ(append_cell(cell), "");
  std::stringstream lines;
  lines << std::ifstream(path).rdbuf();
  const std::string begin =
      R"({"language": "cpp", "status": "real", "backend": "cpu", "case": "int32", )"
      R"("direction": "array", "reason": ")";
  const std::string end = R"(", "asserted": 5, "releases": 2, "ok": )";
  EXPECT_EQ(lines.str(),
            begin + R"(a \"quoted\" \\  )" + "\uFFFD" + end + "false}\n" + begin + end + "true}\n");
  std::remove(path.c_str());
}

TEST(Cells, SayWhatCannotBeWritten) {
  const CellsVariable variable("/no/such/folder/cells");
  EXPECT_NE(append_cell({}).find("/no/such/folder/cells"), std::string::npos);
}

TEST(Cells, AreNotWrittenWithoutAFile) {
  const CellsVariable variable("");
  EXPECT_EQ(append_cell({}), "");
}

}  // namespace
}  // namespace fletching::roundtrip
