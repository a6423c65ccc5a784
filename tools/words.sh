#!/bin/sh
# Finds words that the list in CONTRIBUTING.md replaces, where that list says they are gone: `text` is README, NEWS,
# ARCHITECTURE and the vignettes without their code; `all` is the R files and the report's templates, too. Prints each
# line with a match, and what to write instead; exits 1 if there is any. Usage: tools/words.sh
set -u
cd "$(dirname "$0")/.." || exit 2
text=$(mktemp) code=$(mktemp) list=$(mktemp)
trap 'rm -f "$text" "$code" "$list"' EXIT

# file:line:text of what is read, one line each
for file in README.md NEWS.md ARCHITECTURE.md vignettes/*.Rmd; do
  awk -v file="$file" '/^ *```/ { fenced = !fenced; next } !fenced { print file ":" NR ":" $0 }' "$file"
done >"$text"
find R inst/report inst/rmarkdown inst/quarto -type f -exec grep -In "" /dev/null {} + >"$code"

# Rows "| write | instead of `pattern`, `pattern` | kept in |" as lines "kept in, pattern, write", with tabs between.
awk -F'|' '/^## / { inside = $0 == "## Words" }
  inside && ($4 ~ /text|all/) {
    gsub(/^ +| +$/, "", $2); gsub(/ /, "", $4)
    count = split($3, part, "`")
    for (k = 2; k <= count; k += 2) print $4 "\t" part[k] "\t" $2
  }' CONTRIBUTING.md >"$list"
[ -s "$list" ] || { echo "CONTRIBUTING.md has no list of words"; exit 2; }

found=0
while IFS="$(printf '\t')" read -r where pattern instead; do
  [ "$where" = all ] && files="$text $code" || files=$text
  # shellcheck disable=SC2086
  if cat $files | grep -iE "^[^:]*:[0-9]*:.*\b($pattern)\b"; then
    echo "  write: $instead"
    found=1
  fi
done <"$list"
exit $found
