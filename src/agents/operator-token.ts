import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newToken, type Tokens } from './tokens.ts'

export const OPERATOR_TOKEN_FILE = 'operator.token'

/** The operator's token lives in a file only its owner can read; the store knows its hash. */
export async function readOrMakeOperatorToken(stateFolder: string, tokens: Tokens): Promise<string> {
  const file = join(stateFolder, OPERATOR_TOKEN_FILE)
  if (!existsSync(file)) writeToken(file)
  chmodSync(file, 0o600)
  const token = readFileSync(file, 'utf8').trim()
  if (await tokens.adoptOperator(token)) return token
  // It was revoked: whoever starts the service is the operator all the same, and gets a new one.
  writeToken(file)
  return await readOrMakeOperatorToken(stateFolder, tokens)
}

function writeToken(file: string) {
  writeFileSync(`${file}.new`, `${newToken()}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
