/** The other side of a round trip by file events: whatever is written into one folder, it answers in another. */
import { watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [heard, answered] = process.argv.slice(2)
watch(heard!, (_, name) => {
  if (name !== null) writeFileSync(join(answered!, name), 'x')
})
process.send!('ready')
