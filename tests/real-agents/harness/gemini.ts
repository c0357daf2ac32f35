import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PrepareProgram } from './home.ts'

export const prepareGemini: PrepareProgram = async ({ folder, modelUrl, key }) => {
  await mkdir(join(folder, '.gemini'), { recursive: true })
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
    general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
    privacy: { usageStatisticsEnabled: false },
  }
  await writeFile(join(folder, '.gemini', 'settings.json'), JSON.stringify(settings))
  return { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: modelUrl }
}
