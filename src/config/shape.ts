import { describeBy } from '../yaml/description.ts'
import type { Path, Report } from '../yaml/problem.ts'
import { checkShape as checkDocument } from '../yaml/shape.ts'
import { type ConfigInput, ConfigSchema, configJsonSchema, SMALLEST } from './schema.ts'

const words = { ...describeBy(configJsonSchema, SMALLEST), wellMeant, named }

/** Checks the data against the schema and reports problems in terms of orc.yaml. */
export function checkShape(value: unknown, report: Report): ConfigInput | undefined {
  return checkDocument(ConfigSchema, words, value, report)
}

const NAMED: Record<string, string> = {
  models: 'name for a model',
  people: 'name for a person',
  webhooks: 'name for a webhook',
}

function named(path: Path): string | undefined {
  return NAMED[String(path[0])]
}

/** Specific hints for unknown keys that people commonly try. */
function wellMeant(key: string, parent: Path): string | undefined {
  if (parent.length === 1 && parent[0] === 'permissions' && key === '*') {
    return 'Permissions here already apply to all agents; for one agent, use agents.NAME.permissions.'
  }
  if (parent[0] === 'models' && /key|token|secret|password/i.test(key)) {
    return 'Never put keys into this file: use an environment variable and name it in "key_env".'
  }
  if (parent[0] === 'webhooks' && /secret|token|key/i.test(key)) {
    return 'Never put secrets into this file: use an environment variable and name it in "secret_env".'
  }
  return undefined
}
