# The pictures of docs/benchmarks.md, in the directory "docs/benchmarks".
# bench/docs.sh puts the data before it.
#
# They have no background, and colours that stand out from white and from black.

# A page on a phone shrinks them to 350 pixels, where a letter is still 10 pixels high.
set terminal svg size 490,580 fixed enhanced font 'sans-serif,14'
grey = '#7a7a7a'
set border 3 linecolor rgb grey
set tics nomirror out textcolor rgb grey
set title textcolor rgb grey
set xlabel textcolor rgb grey
set ylabel textcolor rgb grey
set key textcolor rgb grey
set grid ytics linetype 1 linecolor rgb grey linewidth 0.3
array colour[10] = ['#1f8fd6', '#12a594', '#e5484d', '#e2783a', '#a56de2', '#b8891f', '#7a8a99', '#d6559f', '#4f9e3a', '#7f7fe8']

set output directory . '/single-row-inserts.svg'
set title 'Single-row inserts a second'
set xlabel 'clients' offset 0, 0.4
set logscale x 2
set xtics (1, 8, 32, 64)
set xrange [0.9:72]
set yrange [0:*]
set key outside bottom center noenhanced
stats $clients using 1 nooutput
plot for [i = 0:STATS_blocks - 1] $clients index i using 1:2 with linespoints \
    linecolor rgb colour[i % 10 + 1] linewidth (i < 1 ? 3 : 1.5) pointtype (i % 6) + 4 pointsize 0.8 title columnheader(1)

# bars, with their values; instaid's, which comes first, in a colour of their own
set terminal svg size 490,360 fixed enhanced font 'sans-serif,14'
set border 2
unset xtics
unset logscale
unset xlabel
unset key
unset grid
set style fill solid
set ytics autofreq noenhanced
bar(i) = i < 1 ? 0x1f8fd6 : 0x8a8f98
set xrange [0:*]

set output directory . '/time-per-id.svg'
set title 'Nanoseconds an ID, IDs alone, one session'
set offsets 0, graph 0.12, 0, 0
stats $time using 2 nooutput
set yrange [STATS_records - 0.4:-0.6]
plot $time using (0):0:(0):2:($0 - 0.3):($0 + 0.3):(bar($0)):yticlabels(1) with boxxyerror linecolor rgb variable, \
    $time using 2:0:(sprintf('%.0f', $2)) with labels left offset 0.5, 0 textcolor rgb grey

set autoscale y
stats $size using 2 nooutput
set yrange [STATS_records - 0.4:-0.6]
set output directory . '/index-size.svg'
set title 'MB of index after a million rows from 16 clients'
plot $size using (0):0:(0):2:($0 - 0.3):($0 + 0.3):(bar($0)):yticlabels(1) with boxxyerror linecolor rgb variable, \
    $size using 2:0:(sprintf('%.1f', $2)) with labels left offset 0.5, 0 textcolor rgb grey

set output directory . '/shards.svg'
set terminal svg size 490,600 fixed enhanced font 'sans-serif,14'
set border 3
set grid ytics linetype 1 linecolor rgb grey linewidth 0.3
set offsets
set ytics autofreq nomirror out
set format y '%g'
set title 'Milliseconds, by number of shards'
set xlabel 'shards' textcolor rgb grey offset 0, 0.4
set xtics nomirror out (16, 256, '' 4096, 8192)
set xrange [14:9400]
set yrange [0.1:*]
set logscale xy
set key outside bottom center noenhanced
stats $shards using 1 nooutput
plot for [i = 0:STATS_blocks - 1] $shards index i using 1:2 with linespoints \
    linecolor rgb colour[i % 10 + 1] linewidth 2 pointtype (i % 6) + 4 pointsize 0.8 title columnheader(1)
