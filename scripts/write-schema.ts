/** Writes the JSON schemas for editors from those that check orc.yaml and plan.yaml. */
import { writeFileSync } from 'node:fs'
import { configJsonSchema } from '../src/config/config.ts'
import { planJsonSchema } from '../src/runs/plan/validate-plan.ts'

const SCHEMAS = { 'orc.schema.json': configJsonSchema, 'plan.schema.json': planJsonSchema }

for (const [name, schema] of Object.entries(SCHEMAS)) {
  writeFileSync(new URL(`../${name}`, import.meta.url), `${JSON.stringify(schema(), null, 2)}\n`)
}
