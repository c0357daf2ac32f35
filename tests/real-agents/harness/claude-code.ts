import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PrepareProgram } from './home.ts'

export const prepareClaudeCode: PrepareProgram = async ({ folder, cwd, modelUrl, key }) => {
  const state = {
    hasCompletedOnboarding: true,
    // 2.1.325 offers its auto mode, which asks a classifier on the vendor's servers.
    hasSeenAutoDefaultNudge: true,
    hasResetAutoModeOptInForDefaultOffer: true,
    // The program remembers only the end of a key.
    customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  }
  await writeFile(join(folder, '.claude.json'), JSON.stringify(state))
  await mkdir(join(folder, '.claude'), { recursive: true })
  // The auto mode calls a classifier on the vendor's servers.
  const settings = { permissions: { defaultMode: 'default' } }
  await writeFile(join(folder, '.claude', 'settings.json'), JSON.stringify(settings))
  return {
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    // Without it, it refuses to skip permissions as root, as which CI may run.
    IS_SANDBOX: '1',
  }
}
