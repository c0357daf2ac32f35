/** The other side of a round trip by file events: whatever is written into one folder, it answers in another. */
import { watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [heard, answered] = process.argv.slice(2)
let last = ''
watch(heard!, (_, name) => {
  // A new file is told of more than once.
  if (name === null || name === last) return
  last = name
  writeFileSync(join(answered!, name), 'x')
})
process.on('disconnect', () => process.exit())
process.send!('ready')
