import { describeBy } from '../document/description.ts'
import type { Path, Report } from '../document/problem.ts'
import { checkShape as checkDocument } from '../document/shape.ts'
import { type ConfigInput, ConfigSchema, configJsonSchema, SMALLEST } from './schema.ts'

const words = { ...describeBy(configJsonSchema, SMALLEST), wellMeant, named }

/** Checks the data against the schema, and says what is wrong in the words of someone who writes orc.yaml. */
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

/** Good guesses that deserve a better answer than a list of keys. */
function wellMeant(key: string, parent: Path): string | undefined {
  if (parent.length === 1 && parent[0] === 'permissions' && key === '*') {
    return 'Permissions here are for all agents already; those of one agent go under agents.NAME.permissions.'
  }
  if (parent[0] === 'models' && /key|token|secret|password/i.test(key)) {
    return 'Keys never stand in this file: put it into an environment variable, and name that with "key_env".'
  }
  if (parent[0] === 'webhooks' && /secret|token|key/i.test(key)) {
    return 'Secrets never stand in this file: put it into an environment variable, and name that with "secret_env".'
  }
  return undefined
}
