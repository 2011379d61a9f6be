echo '<p id=a></p><script>document.getElementById("a").textContent = "hel" + "lo"</script>' > a.html
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/profile --dump-dom file://$PWD/a.html > out 2> err || { cat err >&2; exit 1; }
grep -o hello out | head -n 1
