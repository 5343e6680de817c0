#include <math.h>
#include <stdio.h>

#include "server/pages/view_parts.h"

void view_age_text(int64_t age_us, char out[VIEW_TEXT])
{
    int64_t s = (age_us < 0 ? -age_us : age_us) / 1000000;
    const char *before = age_us < 0 ? "in " : "";
    const char *after = age_us < 0 ? "" : " ago";

    if (s < 60)
        (void) snprintf(out, VIEW_TEXT, "%s%lld s%s", before, (long long) s, after);
    else if (s < 7200)
        (void) snprintf(out, VIEW_TEXT, "%s%lld min%s", before, (long long) (s / 60), after);
    else if (s < 172800)
        (void) snprintf(out, VIEW_TEXT, "%s%lld h%s", before, (long long) (s / 3600), after);
    else
        (void) snprintf(out, VIEW_TEXT, "%s%lld days%s", before, (long long) (s / 86400), after);
}

double view_nice_step(double span, unsigned max)
{
    double raw = span / max;
    double power;

    if (!(raw > 0) || !isfinite(raw))
        return 1;
    power = pow(10, floor(log10(raw)));
    for (int i = 0; i < 2; i++) {
        static const double factors[] = {1, 2, 5};

        for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
            if (factors[k] * power >= raw)
                return factors[k] * power;
        }
        power *= 10;
    }
    return power;
}
