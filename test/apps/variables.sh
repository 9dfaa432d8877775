# SPDX-License-Identifier: BSD-3-Clause
# The UCX_HIXL_* variables: what ucx_info shows has a description there and a row
# in the README, with the default that is shown; and the README has no others.
set -u

. "$HIXL_TOP/test/support/lib.sh"

fabric_begin variables
timeout 60 "$HIXL_RUN" --vhca ucx_info -fc >"$tmp/info" 2>"$tmp/err"

# Of each variable of ours: name, default, how many lines describe it. What all
# interfaces have in common says "inherits:".
awk '
/^#/ {
    inherits += /^# inherits:/
    text     += /^# *[A-Za-z0-9]/ && !/^# (syntax|inherits):/
    next
}
/^UCX_HIXL_/ && !inherits {
    at = index($0, "=")
    print substr($0, 1, at - 1) "|" substr($0, at + 1) "|" text
}
{ inherits = text = 0 }' "$tmp/info" >"$tmp/shown"

# The first cell of a row names one or more, `_X` for UCX_HIXL_X; the second has
# their defaults.
awk -F'|' '
/^\| *`UCX_HIXL_/ {
    names    = split($2, name, "`")
    defaults = split($3, value, ",")
    k        = 0
    for (i = 2; i <= names; i += 2) {
        sub(/^_/, "UCX_HIXL_", name[i])
        ++k
        gsub(/^ +| +$/, "", value[k])
        print name[i] "|" (k > defaults ? "" : value[k])
    }
}' "$HIXL_TOP/README.md" >"$tmp/readme"

# Numbers as UCX prints them and as people write them
plain() {
    case $1 in
    '(auto)') echo ;;
    *[0-9].*us) awk -v v="${1%us}" 'BEGIN { print v / 1e6 "s" }' ;;
    *) echo "${1,,}" ;;
    esac
}

while IFS='|' read -r name default lines; do
    if [ "$lines" -eq 0 ]; then
        failed "$name, description" "ucx_info -fc shows none"
    fi
    if ! grep -q "^$name|" "$tmp/readme"; then
        failed "$name, README" "there is no row"
        continue
    fi
    value=$(sed -n "s/^$name|//p" "$tmp/readme")
    if [ "$(plain "$value")" != "$(plain "$default")" ]; then
        failed "$name, README" "the default is $default and not $value"
    else
        passed "$name"
    fi
done <"$tmp/shown"

while IFS='|' read -r name value; do
    grep -q "^$name|" "$tmp/shown" ||
        failed "$name, README" "ucx_info -fc does not show it"
done <"$tmp/readme"

[ "$(wc -l <"$tmp/shown")" -ge 15 ] || {
    cat "$tmp/err"
    failed "variables" "only $(wc -l <"$tmp/shown") are shown"
}
verdict
