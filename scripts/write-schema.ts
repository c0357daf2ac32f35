/** Writes orc.schema.json, which editors read, from the schema that orc.yaml is checked by. */
import { writeFileSync } from 'node:fs'
import { configJsonSchema } from '../src/config.ts'

const file = new URL('../orc.schema.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(configJsonSchema(), null, 2)}\n`)
