# SPDX-License-Identifier: BSD-3-Clause
# hixl-run is installed with the directories of this build filled in; the rest
# of contrib/ is for the source tree.

EXTRA_DIST += contrib/check contrib/check-layers contrib/hixl-run \
              contrib/hixl-run.vars.in contrib/install-deps \
              contrib/lib.sh contrib/quickstart contrib/ucx-headers

bin_SCRIPTS += hixl-run
CLEANFILES  += hixl-run

hixl-run: $(srcdir)/contrib/hixl-run hixl-run.vars
	$(AM_V_GEN)sed -e 's|^installed_libdir=$$|installed_libdir=$(libdir)|' \
	    -e 's|^installed_pkglibdir=$$|installed_pkglibdir=$(pkglibdir)|' \
	    -e '/^# The installed copy has the build/r hixl-run.vars' \
	    $(srcdir)/contrib/hixl-run >$@.tmp && chmod 755 $@.tmp && mv -f $@.tmp $@

TESTS      += contrib/check-layers contrib/check-messages
EXTRA_DIST += contrib/check-messages

dist_check_SCRIPTS += test/unit/hixl_run.sh
TESTS              += test/unit/hixl_run.sh

# The installed copy has to find what was installed with it.
installcheck-local:
	$(DESTDIR)$(bindir)/hixl-run --vhca ucx_info -d -t hixl | \
	    grep 'Transport: hixl'
