#!/usr/bin/env bash
# Functions that the product does not call (style rule 12), with the one file that may where there is one.
set -eu
cd "$(dirname "$0")/.."

product=$(find base experiment evidence audit runner server -name '*.[ch]' | LC_ALL=C sort)
# tests/ci holds such calls as text, to see that they are found
others=$(find tests tools -path tests/ci -prune -o -name node_modules -prune -o -name '*.[ch]' -print | LC_ALL=C sort)
found=0

# ban REGEX ALLOWED-FILES FILES…: calls of functions whose whole name matches
ban() {
    local names=$1 allowed=$2 hits
    shift 2
    hits=$(grep -nE "(^|[^A-Za-z0-9_])($names)[[:space:]]*\(" "$@" /dev/null || true)
    # comment lines are prose
    hits=$(printf '%s\n' "$hits" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/?\*)' || true)
    [ -z "$allowed" ] || hits=$(printf '%s\n' "$hits" | grep -vE "^($allowed):" || true)
    if [ -n "$hits" ]; then
        printf '%s\n' "$hits" | sed 's/$/   <- banned/'
        found=1
    fi
}

# shellcheck disable=SC2086
{
    ban 'strcpy|stpcpy|strcat|sprintf|vsprintf|gets|strtok|strncpy|strncat|system|popen|tmpnam|mktemp|alloca' '' $product $others
    ban 'ato[if]|atoll?|v?f?s?scanf|asctime(_r)?|ctime(_r)?|localtime(_r)?|gmtime(_r)?|mktime|strptime' '' $product
    ban 'strto(l|ll|ul|ull|f|ld|imax|umax)|strerror(_r)?|rand|srand|random|drand48|access|chdir|setenv|unsetenv|putenv' '' $product
    ban 'strtod(_l)?|newlocale|uselocale|setlocale' 'base/num\.c' $product
    # cJSON alone takes what is not JSON and prints what is not the number; its look-up ignores case
    ban 'cJSON_Parse[A-Za-z]*' 'base/json_in\.c' $product
    ban 'cJSON_(Print[A-Za-z]*|GetObjectItem|HasObjectItem|GetNumberValue|Minify|InitHooks|CreateRaw|AddRawToObject|SetNumberHelper)' '' $product
    ban 'SHA1_Init|MD5|md5_(init|update|digest)' '' $product
    # git's names of blobs, and nothing else
    ban 'sha1_(init|update|digest)' 'base/digest\.c' $product
    ban 'pthread_cancel' '' $product
}
[ "$found" -eq 0 ] || exit 1
echo "check_banned: ok"
