# reads IDs and shortcodes as the trial sends them

# the functions, to copy from here
EPOCH = 1_314_220_021_721
DIGITS = [*'A'..'Z', *'a'..'z', *'0'..'9', '-', '_'].join

def decode(id) = [Time.at(0, (id >> 23) + EPOCH, :millisecond), id >> 10 & 8191, id & 1023]
def min_id(time) = (time.to_r * 1000).floor - EPOCH << 23
def to_shortcode(id) = (id > 63 ? to_shortcode(id >> 6) : '') + DIGITS[id & 63]
def from_shortcode(text)
  id = text[...12].each_char.reduce(0) { |high, digit| high << 6 | (DIGITS.index(digit) || -1) }
  raise ArgumentError, "\"#{text}\" is not a shortcode" if to_shortcode(id) != text || id >> 63 != 0
  id
end
# to here

STDIN.set_encoding('UTF-8').each_line(chomp: true) do |line|
  id = line.match?(/\A\d+\z/) ? Integer(line, 10) : from_shortcode(line)
  time, shard, sequence = decode(id)
  puts "#{id} #{(time.to_r * 1000).floor} #{shard} #{sequence} #{min_id(time)} #{to_shortcode(id)}"
rescue ArgumentError
  puts 'refused'
end
