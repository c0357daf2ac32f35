import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newToken, type Tokens } from '../engine/tokens.ts'

export const OPERATOR_TOKEN_FILE = 'operator.token'

/** The operator's token lives in a file only its owner can read; the store knows its hash. */
export async function readOrMakeOperatorToken(stateFolder: string, tokens: Tokens): Promise<string> {
  const file = join(stateFolder, OPERATOR_TOKEN_FILE)
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, `${newToken()}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  chmodSync(file, 0o600)
  const token = readFileSync(file, 'utf8').trim()
  await tokens.adoptOperator(token)
  return token
}
